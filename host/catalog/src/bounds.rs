//! How much a plugin may say of its tools.

use bytesize::ByteSize;
use toolbay_model::ToolDefinition;
use toolbay_model::text::thousands;

/// How much a plugin may say of its tools: it is kept, and every client receives it.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The highest number of tools of a plugin.
    pub tools: usize,
    /// The largest size of all schemas of a plugin together.
    pub schemas: ByteSize,
    /// The largest size of everything that a plugin says of its tools together.
    pub size: ByteSize,
}

impl Bounds {
    /// Checks a list before anything in it is parsed.
    ///
    /// # Errors
    ///
    /// Which bound it exceeds, and the key that raises it.
    pub fn check(&self, tools: &[ToolDefinition]) -> Result<(), String> {
        if tools.len() > self.tools {
            let [n, most] = [tools.len(), self.tools].map(|n| thousands(n as u64));
            return Err(format!("has {n} tools, but at most {most} are allowed (to allow more, raise describe.tools)"));
        }
        let larger = |size: usize, most: ByteSize| size as u64 > most.as_u64();
        if larger(tools.iter().map(ToolDefinition::schemas).sum(), self.schemas) {
            let most = self.schemas.display().iec();
            return Err(format!("its schemas are larger than {most} in total (to allow more, raise describe.schemas)"));
        }
        if larger(tools.iter().map(ToolDefinition::size).sum(), self.size) {
            let most = self.size.display().iec();
            return Err(format!(
                "the descriptions, schemas, icons and _meta of its tools are larger than {most} in total (to allow more, \
                 raise describe.size)"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use toolbay_model::Icon;

    use super::*;

    #[test]
    fn everything_that_is_listed_counts() {
        let bounds = Bounds { tools: 3, schemas: ByteSize::b(100), size: ByteSize::kib(1) };
        let tool = ToolDefinition { name: "a".into(), ..ToolDefinition::default() };
        let long = || "x".repeat(1000);
        let icon = |src: String| Icon { src, mime_type: None, sizes: Vec::new(), theme: None };
        let large = [
            ToolDefinition { name: long(), ..tool.clone() },
            ToolDefinition { title: Some(long()), ..tool.clone() },
            ToolDefinition { description: Some(long()), ..tool.clone() },
            ToolDefinition { meta: Some(long()), ..tool.clone() },
            ToolDefinition { icons: vec![icon(long())], ..tool.clone() },
            ToolDefinition { icons: vec![Icon { mime_type: Some(long()), ..icon(String::new()) }], ..tool.clone() },
            ToolDefinition { icons: vec![Icon { sizes: vec![long()], ..icon(String::new()) }], ..tool.clone() },
            // What is empty takes room, too.
            ToolDefinition { icons: vec![icon(String::new()); 20], ..tool.clone() },
            ToolDefinition {
                icons: vec![Icon { sizes: vec![String::new(); 20], ..icon(String::new()) }],
                ..tool.clone()
            },
        ];
        for large in large {
            let why = bounds.check(&[large]).unwrap_err();
            assert!(why.contains("are larger than 1.0 KiB in total (to allow more, raise describe.size)"), "{why}");
        }
        let schema = ToolDefinition { output_schema: Some("x".repeat(101)), ..tool.clone() };
        assert!(bounds.check(&[schema]).unwrap_err().contains("describe.schemas"));
        assert_eq!(bounds.check(&[tool.clone(), tool.clone(), tool.clone()]), Ok(()));
        assert!(
            bounds.check(&[tool.clone(), tool.clone(), tool.clone(), tool]).unwrap_err().contains("describe.tools")
        );
    }
}
