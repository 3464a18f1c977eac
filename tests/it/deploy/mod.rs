//! Deployment in containers: files that can be checked without a container, and the behaviour that they rely on.

mod images;
mod kubernetes;
mod metrics;
mod monitoring;
mod page;
mod probes;
mod series;
mod settings;
mod yaml;
