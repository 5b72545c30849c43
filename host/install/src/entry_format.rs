//! Formats of client configurations.

/// Format of a client's configuration and its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryFormat {
    /// Language of the file.
    pub format: FileFormat,
    /// Key of the table that contains an entry for each server.
    pub servers_key: &'static str,
    /// If set, an entry with a command has the member `type`.
    pub stdio_type: bool,
    /// If set, an entry with a URL has the member `type`.
    pub http_type: bool,
    /// Key of the URL. `None` if the client supports only servers that it starts.
    pub url_key: Option<&'static str>,
    /// Form in which an entry names the environment variable of a bearer token.
    pub token_form: TokenForm,
}

/// Language of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// JSON, with comments and trailing commas if the file has them.
    Json,
    /// TOML.
    Toml,
}

/// Form in which an entry names the environment variable of a bearer token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenForm {
    /// Not supported.
    None,
    /// In the header `Authorization`, between these two texts.
    Header(&'static str, &'static str),
    /// As the value of this key.
    Key(&'static str),
}

impl EntryFormat {
    /// JSON with `mcpServers`, as most clients use it.
    pub(crate) const COMMON: Self = Self {
        format: FileFormat::Json,
        servers_key: "mcpServers",
        stdio_type: false,
        http_type: false,
        url_key: Some("url"),
        token_form: TokenForm::None,
    };
}

impl TokenForm {
    /// In the header, in the form `${env:NAME}`, as editors use it.
    pub(crate) const ENVIRONMENT: Self = Self::Header("Bearer ${env:", "}");
}
