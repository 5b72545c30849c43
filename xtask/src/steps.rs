//! Steps of the tests that check what is beside the code: the book, the dependencies, the reference.

pub(crate) mod book;
pub(crate) mod deny;
pub(crate) mod rustdoc;

mod tools;
