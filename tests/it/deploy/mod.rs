//! What runs the service in containers: the files, as far as they can be looked at without a container, and what they rely on.

mod images;
mod kubernetes;
mod monitoring;
mod probes;
mod series;
mod settings;
mod yaml;
