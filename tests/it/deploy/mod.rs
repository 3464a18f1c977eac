//! Deployment in containers: files that can be checked without a container, and the behaviour that they rely on.

mod images;
mod kubernetes;
mod monitoring;
mod probes;
mod series;
mod settings;
mod yaml;
