//! A tool in service.

use std::sync::Arc;

use toolbay_model::Tool;

use crate::definition::Definition;
use crate::plugin::Plugin;

/// A tool in service.
#[derive(Debug)]
pub struct Offer {
    /// The tool as clients see it, under the name that they call.
    pub tool: Arc<Tool>,
    /// The definition that it was made from, with the name within the plugin.
    pub definition: Arc<Definition>,
    /// The plugin that runs its calls.
    pub plugin: Arc<Plugin>,
}

#[cfg(test)]
pub(crate) mod tests {
    use toolbay_model::ToolDefinition;

    use super::*;
    use crate::component::Component;
    use crate::definition::check;
    use crate::terms::Terms;

    /// The definition of a tool without arguments.
    pub(crate) fn definition(name: &str) -> Arc<Definition> {
        let input_schema = r#"{"type":"object"}"#.to_owned();
        let definition = ToolDefinition { name: name.to_owned(), input_schema, ..ToolDefinition::default() };
        check(vec![definition]).unwrap().remove(0)
    }

    /// A plugin with these tools that cannot be called.
    pub(crate) fn plugin(id: &str, prefix: Option<&str>, tools: Vec<Arc<Definition>>) -> Arc<Plugin> {
        let terms = Terms { prefix: prefix.map(str::to_owned), ..Terms::default() };
        Arc::new(Plugin::new(id.to_owned(), Arc::new(Component::without_code(tools)), terms))
    }

    /// A tool that cannot be called.
    pub(crate) fn offer(name: &str) -> Offer {
        let definition = definition(name);
        let plugin = plugin("test", None, vec![Arc::clone(&definition)]);
        Offer { tool: Arc::clone(&definition.tool), definition, plugin }
    }
}
