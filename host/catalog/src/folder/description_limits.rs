//! Limits for the descriptions of plugins.

use bytesize::ByteSize;
use toolbay_model::text::format_thousands;
use toolbay_model::{ComponentDescription, PromptDefinition, ResourceDefinition, ToolDefinition};

/// Limits for the description of a plugin: the server stores it, and every client receives it.
#[derive(Clone, Copy, Debug)]
pub struct DescribeLimits {
    /// Maximum number of tools of a plugin.
    pub tools: usize,
    /// Maximum number of prompts of a plugin, and of prompt files next to one.
    pub prompts: usize,
    /// Maximum number of resources and resource templates of a plugin together, and of resource
    /// files next to one.
    pub resources: usize,
    /// Maximum size of all schemas of a plugin together.
    pub schemas: ByteSize,
    /// Maximum size of the whole description of a plugin, and of the prompt files next to one.
    pub size: ByteSize,
    /// Maximum size of the files of all skills of all plugins together. They are held in memory.
    pub skills: ByteSize,
}

impl DescribeLimits {
    /// Checks the description of a plugin before anything in it is parsed.
    ///
    /// # Errors
    ///
    /// Returns the limit that it exceeds, and the key that raises the limit.
    pub fn check(&self, description: &ComponentDescription) -> Result<(), String> {
        let ComponentDescription {
            tools,
            prompts,
            resources,
            templates,
            completes: _,
            manner: _,
            remarks: _,
            left_out: _,
        } = description;
        let resources = || resources.iter().chain(templates);
        for (n, most, what, key) in [
            (tools.len(), self.tools, "tools", "tools"),
            (prompts.len(), self.prompts, "prompts", "prompts"),
            (
                resources().count(),
                self.resources,
                "resources and resource templates",
                "resources",
            ),
        ] {
            if n > most {
                let [n, most] = [n, most].map(|n| format_thousands(n as u64));
                return Err(format!(
                    "has {n} {what}, but at most {most} are allowed (to allow more, raise describe.{key})"
                ));
            }
        }
        let is_larger = |size: usize, most: ByteSize| size as u64 > most.as_u64();
        if is_larger(
            tools.iter().map(ToolDefinition::schema_bytes).sum(),
            self.schemas,
        ) {
            let max_size = self.schemas.display().iec();
            return Err(format!(
                "its schemas are larger than {max_size} in total (to allow more, raise describe.schemas)"
            ));
        }
        let size = tools.iter().map(ToolDefinition::size).sum::<usize>()
            + prompts.iter().map(PromptDefinition::size).sum::<usize>()
            + resources().map(ResourceDefinition::size).sum::<usize>();
        if is_larger(size, self.size) {
            let what = match (prompts.is_empty(), resources().next().is_none()) {
                (true, true) => "the descriptions, schemas, icons and _meta of its tools",
                _ => "the descriptions, schemas, icons and _meta of what it offers",
            };
            let max_size = self.size.display().iec();
            return Err(format!(
                "{what} are larger than {max_size} in total (to allow more, raise describe.size)"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use toolbay_model::{Icon, PromptArgument};

    use super::*;

    /// Small limits.
    pub(crate) const SMALL: DescribeLimits = DescribeLimits {
        tools: 3,
        prompts: 3,
        resources: 3,
        schemas: ByteSize::b(100),
        size: ByteSize::kib(1),
        skills: ByteSize::kib(100),
    };

    fn check(tools: Vec<ToolDefinition>) -> Result<(), String> {
        SMALL.check(&ComponentDescription {
            tools,
            ..ComponentDescription::default()
        })
    }

    #[test]
    fn everything_that_is_listed_counts() {
        let tool = ToolDefinition {
            name: "a".into(),
            ..ToolDefinition::default()
        };
        let long = || "x".repeat(1000);
        let icon = |src: String| Icon {
            src,
            mime_type: None,
            sizes: Vec::new(),
            theme: None,
        };
        let large = [
            ToolDefinition {
                name: long(),
                ..tool.clone()
            },
            ToolDefinition {
                title: Some(long()),
                ..tool.clone()
            },
            ToolDefinition {
                description: Some(long()),
                ..tool.clone()
            },
            ToolDefinition {
                meta: Some(long()),
                ..tool.clone()
            },
            ToolDefinition {
                icons: vec![icon(long())],
                ..tool.clone()
            },
            ToolDefinition {
                icons: vec![Icon {
                    mime_type: Some(long()),
                    ..icon(String::new())
                }],
                ..tool.clone()
            },
            ToolDefinition {
                icons: vec![Icon {
                    sizes: vec![long()],
                    ..icon(String::new())
                }],
                ..tool.clone()
            },
            // Empty items take memory, too.
            ToolDefinition {
                icons: vec![icon(String::new()); 20],
                ..tool.clone()
            },
            ToolDefinition {
                icons: vec![Icon {
                    sizes: vec![String::new(); 20],
                    ..icon(String::new())
                }],
                ..tool.clone()
            },
        ];
        for large in large {
            let why = check(vec![large]).unwrap_err();
            assert!(
                why.contains(
                    "are larger than 1.0 KiB in total (to allow more, raise describe.size)"
                ),
                "{why}"
            );
        }
        let schema = ToolDefinition {
            output_schema: Some("x".repeat(101)),
            ..tool.clone()
        };
        assert!(
            check(vec![schema])
                .unwrap_err()
                .contains("describe.schemas")
        );
        assert_eq!(check(vec![tool.clone(); 3]), Ok(()));
        assert!(check(vec![tool; 4]).unwrap_err().contains("describe.tools"));
    }

    #[test]
    fn prompts_and_resources_count_with_the_tools() {
        let some = || Some("x".repeat(400));
        let tools = vec![ToolDefinition {
            description: some(),
            ..ToolDefinition::default()
        }];
        let argument = PromptArgument {
            description: some(),
            ..PromptArgument::default()
        };
        let prompts = vec![PromptDefinition {
            arguments: vec![argument],
            ..PromptDefinition::default()
        }];
        let resources = vec![ResourceDefinition {
            description: some(),
            ..ResourceDefinition::default()
        }];
        let empty = ComponentDescription::default;
        for two in [
            ComponentDescription {
                tools: tools.clone(),
                ..empty()
            },
            ComponentDescription {
                prompts: prompts.clone(),
                ..empty()
            },
            ComponentDescription {
                resources: resources.clone(),
                ..empty()
            },
        ] {
            assert_eq!(SMALL.check(&two), Ok(()));
        }
        let all = ComponentDescription {
            tools,
            prompts: prompts.clone(),
            resources: resources.clone(),
            ..empty()
        };
        let why = SMALL.check(&all).unwrap_err();
        assert_eq!(
            why,
            "the descriptions, schemas, icons and _meta of what it offers are larger than 1.0 KiB in total (to allow more, \
             raise describe.size)"
        );
        let many = ComponentDescription {
            prompts: vec![PromptDefinition::default(); 4],
            ..empty()
        };
        let why = SMALL.check(&many).unwrap_err();
        assert_eq!(
            why,
            "has 4 prompts, but at most 3 are allowed (to allow more, raise describe.prompts)"
        );
        let small = ResourceDefinition::default();
        let many = ComponentDescription {
            resources: vec![small.clone(); 2],
            templates: vec![small; 2],
            ..empty()
        };
        let why = SMALL.check(&many).unwrap_err();
        let expected = "has 4 resources and resource templates, but at most 3 are allowed (to allow more, raise \
             describe.resources)";
        assert_eq!(why, expected);
    }
}
