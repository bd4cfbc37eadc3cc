//! The durable record.
