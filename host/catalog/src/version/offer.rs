//! Tools, prompts, resources and skills in service, with the plugins that they belong to.

use std::sync::Arc;

use toolbay_model::{ListedResource, Prompt, Skill, Tool};

use crate::definition::fingerprint::DefinitionFingerprint;
use crate::definition::prompt_entry::PromptEntry;
use crate::definition::resource_entry::ResourceEntry;
use crate::definition::tool_definition::ValidDefinition;
use crate::plain::file_resource::FileResource;
use crate::plain::text_prompt::TextPrompt;
use crate::rules::approval::{ApprovalPolicy, Approver, RequiredApproval};
use crate::version::plugin::Plugin;

/// A tool in service.
#[derive(Debug)]
pub struct ToolOffer {
    /// The tool as clients receive it, under the name that they call.
    pub tool: Arc<Tool>,
    /// The definition of the tool, with its name within the plugin.
    pub definition: Arc<ValidDefinition>,
    /// The plugin that runs its calls.
    pub plugin: Arc<Plugin>,
}

impl ToolOffer {
    /// Returns which calls of the tool a person must allow first; `None` for no calls. The
    /// operator's changes to the annotations count.
    pub fn approval_policy(&self) -> Option<ApprovalPolicy> {
        self.plugin
            .terms
            .approvals
            .setting_for(&self.definition.tool.name)
            .policy_for(self.definition.tool.annotations)
    }

    /// Returns who answers the question whether a call of the tool is allowed.
    pub fn approver(&self) -> Approver {
        self.plugin
            .terms
            .approvals
            .approver_for(&self.definition.tool.name)
    }

    /// Returns the operator's requirement of approval, if there is one.
    pub fn required_approval(&self) -> Option<RequiredApproval> {
        let approver = self.approver();
        self.approval_policy()
            .map(|policy| RequiredApproval { policy, approver })
    }
}

/// A prompt in service.
#[derive(Debug)]
pub struct PromptOffer {
    /// The prompt as clients receive it, under the name by which they get it.
    pub prompt: Arc<Prompt>,
    /// Its definition, with the name within the plugin.
    pub entry: Arc<PromptEntry>,
    /// The plugin that it belongs to, whose terms apply.
    pub plugin: Arc<Plugin>,
    /// The prompt's file. `None` if the plugin provides the prompt.
    pub text: Option<Arc<TextPrompt>>,
}

impl PromptOffer {
    /// Returns whether the plugin completes the prompt's arguments.
    pub fn completes(&self) -> bool {
        self.text.is_none() && self.plugin.component.contents.completes
    }
}

/// A resource or a resource template in service.
#[derive(Debug)]
pub struct ResourceOffer {
    /// The definition as clients receive it, with the pattern of URIs if it is a template.
    pub entry: Arc<ResourceEntry>,
    /// The plugin that it belongs to, whose terms apply.
    pub plugin: Arc<Plugin>,
    /// The resource's file. `None` if the plugin provides the resource.
    pub file: Option<Arc<FileResource>>,
}

impl ResourceOffer {
    /// Returns the resource as clients receive it in a list.
    pub fn resource(&self) -> &Arc<ListedResource> {
        &self.entry.resource
    }

    /// Returns whether the plugin completes the template's variables.
    pub fn completes(&self) -> bool {
        self.entry.template.is_some() && self.plugin.component.contents.completes
    }
}

/// A skill in service.
#[derive(Debug)]
pub struct SkillOffer {
    /// The skill as clients receive it.
    pub skill: Arc<Skill>,
    /// Fingerprint, which differs from that of every other skill and of every other version of this
    /// one.
    pub(crate) fingerprint: DefinitionFingerprint,
}

#[cfg(test)]
pub(crate) mod tests {
    use toolbay_model::{ComponentDescription, ToolDefinition};

    use super::*;
    use crate::component::loaded_component::LoadedComponent;
    use crate::definition::component_contents::ComponentContents;
    use crate::rules::terms::PluginTerms;
    use crate::version::plain_files::PlainFiles;

    /// The definition of a tool without arguments.
    pub(crate) fn definition(name: &str) -> ToolDefinition {
        let input_schema = r#"{"type":"object"}"#.to_owned();
        ToolDefinition {
            name: name.to_owned(),
            input_schema,
            ..ToolDefinition::default()
        }
    }

    /// A plugin that lists this and cannot be called.
    pub(crate) fn plugin(
        id: &str,
        prefix: Option<&str>,
        description: ComponentDescription,
    ) -> Arc<Plugin> {
        let terms = PluginTerms {
            prefix: prefix.map(str::to_owned),
            ..PluginTerms::default()
        };
        let component =
            LoadedComponent::without_code(ComponentContents::validate(description).unwrap());
        Arc::new(Plugin::new(
            id.to_owned(),
            Arc::new(component),
            Arc::<PlainFiles>::default(),
            terms,
        ))
    }

    /// A tool that cannot be called.
    pub(crate) fn offer(name: &str) -> ToolOffer {
        let plugin = plugin(
            "test",
            None,
            ComponentDescription {
                tools: vec![definition(name)],
                ..ComponentDescription::default()
            },
        );
        let definition = Arc::clone(&plugin.component.contents.tools[0]);
        ToolOffer {
            tool: Arc::clone(&definition.tool),
            definition,
            plugin,
        }
    }
}
