//! The tools, prompts, resources and skills of the stub host.

use std::sync::Arc;

use serde_json::json;
use toolbay_model::{
    EffectHints, Icon, ListedResource, Prompt, PromptArgument, Skill, TaskSupport, Tool,
};

/// The names of the tools and of the prompts.
pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];

/// The URIs of the resources.
pub(crate) const URIS: [&str; 3] = ["test://a", "test://b", "test://c/d"];

/// The templates. Each matches the resources that start with its prefix.
pub(super) const TEMPLATES: [&str; 3] = ["memo://1/{id}", "memo://2/{id}", "memo://3/{id}"];

/// The directory of the skills. Each skill has only its own file.
pub(crate) const FOLDER: &str = "skill://x";

/// The URIs of the skills.
pub(crate) const SKILLS: [&str; 3] = [
    "skill://x/a/SKILL.md",
    "skill://x/b/SKILL.md",
    "skill://x/c/SKILL.md",
];

/// The prompt that asks its caller a question.
pub(crate) const ASKING: &str = "c";

/// Returns a prompt with every member that a prompt can have.
pub(crate) fn prompt(name: &str) -> Arc<Prompt> {
    let argument = |name: &str, required| PromptArgument {
        name: name.to_owned(),
        title: Some("An argument".into()),
        description: Some("What it means.".into()),
        required,
    };
    Arc::new(Prompt {
        name: name.to_owned(),
        title: Some("A title".into()),
        description: Some("Asks for it.".into()),
        arguments: [argument("x", true), argument("y", false)].into(),
        icons: [Icon {
            src: "data:,".into(),
            mime_type: None,
            sizes: vec![],
            theme: None,
        }]
        .into(),
        meta: Some(json!({"a": 1}).into()),
    })
}

/// Returns a resource or a template with every member that it can have.
pub(crate) fn listed_resource(uri: &str) -> Arc<ListedResource> {
    Arc::new(ListedResource {
        uri: uri.to_owned(),
        name: "it".into(),
        title: Some("A title".into()),
        description: Some("Contains it.".into()),
        mime_type: Some("text/plain".into()),
        size: Some(3),
        audience: vec!["user"],
        priority: Some(0.5),
        last_modified: Some("2026-01-02".into()),
        icons: [Icon {
            src: "data:,".into(),
            mime_type: None,
            sizes: vec![],
            theme: None,
        }]
        .into(),
        meta: Some(json!({"a": 1}).into()),
    })
}

/// Returns a skill with one file.
pub(super) fn skill(uri: &str) -> Arc<Skill> {
    let entry = json!({"uri": uri, "frontmatter": {}, "resources": []}).into();
    Arc::new(Skill {
        uri: uri.to_owned(),
        description: "Does it.".into(),
        entry,
    })
}

pub(super) fn is_known(uri: &str) -> bool {
    URIS.contains(&uri)
        || TEMPLATES
            .iter()
            .any(|template| uri.starts_with(template.trim_end_matches("{id}")))
}

/// Returns a tool with every member that a tool can have.
pub(crate) fn tool(name: &str) -> Arc<Tool> {
    Arc::new(Tool {
        name: name.to_owned(),
        title: Some("A title".into()),
        description: Some("Does it.".into()),
        input_schema: json!({"type": "object"}).into(),
        output_schema: Some(json!({"type": "object"}).into()),
        annotations: Some(EffectHints {
            read_only: Some(true),
            ..EffectHints::default()
        }),
        icons: [Icon {
            src: "data:,".into(),
            mime_type: None,
            sizes: vec![],
            theme: None,
        }]
        .into(),
        meta: Some(json!({"a": 1}).into()),
        headers: Vec::new(),
        task_support: TaskSupport::Optional,
    })
}
