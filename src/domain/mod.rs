//! One noun, one module: its types and its SQL. Only that module names its table.
//!
//! Functions take an executor or a connection; the caller owns the transaction.

pub mod installation;
