//! The keeper on a real database, with a bus of its own.

