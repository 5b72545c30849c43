use toolbay_plugin::prelude::*;

struct Plugin;

impl Plugin {
    /// Answers.
    #[tool]
    fn ping(&self) {}
}

fn main() {}
