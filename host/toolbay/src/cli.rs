//! The command line: what each word means, and which exit code says what.

mod call;
mod check;
mod common;
mod compile;
mod dev;
mod list;
mod new;
mod output;
mod requirements;
mod result;
mod serve;
mod signals;
mod token;
mod waiting;

use std::path::PathBuf;
use std::process::ExitCode;

use bytesize::ByteSize;
use clap::{Parser, Subcommand};

use self::common::{Common, Listen};
use self::output::complain;
use crate::config::ConfigError;

/// Configuration that cannot be used (`EX_USAGE` of sysexits.h).
const BAD_CONFIGURATION: u8 = 64;

/// An MCP server whose tools are WebAssembly components: drop a .wasm into a folder and it is a tool.
#[derive(Debug, Parser)]
#[command(name = "toolbay", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the tools in a folder over MCP, on standard input and output or over HTTP
    Serve {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        listen: Listen,
    },
    /// Show what would be served: plugins, tools, grants, and why a file is refused
    ///
    /// Ends with exit code 0 also when files are refused: that is part of the answer (`"status": "refused"` with
    /// --json). `toolbay compile` ends with 1 then.
    List {
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain a plugin file before trusting it: what it is, its tools, and what it can use
    Check {
        /// The plugin file, or the folder of a plugin's project
        file: PathBuf,
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin a plugin: a folder that builds at once
    New {
        /// The folder to make; its last part is the plugin's name, such as my-weather
        name: PathBuf,
        /// The language to write it in
        #[arg(long, value_name = "LANGUAGE")]
        language: new::Language,
        /// Plain WIT functions, without an SDK
        #[arg(long)]
        plain: bool,
    },
    /// Build a plugin after each change, put it into the plugin folder, and make its example call
    Dev {
        /// The plugin's project: the folder with its plugin.toml
        #[arg(default_value = ".")]
        project: PathBuf,
        #[command(flatten)]
        common: Common,
        /// Build once and end
        #[arg(long)]
        once: bool,
    },
    /// Compile every plugin in the folder into the store, so that a server starts at once
    ///
    /// Ends with exit code 1 when a plugin is refused, or when what was compiled is not kept.
    Compile(Common),
    /// Compile standard input to standard output; toolbay starts this itself
    #[command(hide = true)]
    CompileWorker {
        /// Bytes of a guest's native stack
        stack: u64,
        /// Bytes of address space
        memory: u64,
        /// Seconds of processor time
        cpu: u64,
    },
    /// Make a bearer token for MCP over HTTP, and the lines of toolbay.toml that admit it
    Token {
        /// Whose it is, for the log
        name: String,
    },
    /// Call one tool, under the limits that serving would apply
    Call {
        /// The tool's name, as `list` shows it
        tool: String,
        /// The arguments: a JSON object, or - to read it from standard input
        #[arg(default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        common: Common,
        /// Print the whole result as JSON
        #[arg(long)]
        json: bool,
        /// Print what the call used, beside what it was allowed
        #[arg(long)]
        usage: bool,
    },
}

impl Cli {
    /// Does what the command line says.
    pub fn run(self) -> ExitCode {
        let result = match self.command {
            Command::Serve { common, listen } => serve::run(&common, &listen),
            Command::Token { name } => token::run(&name),
            Command::Check { file, common, json } => check::run(&common, &file, json),
            Command::New { name, language, plain } => new::run(&name, language, plain),
            Command::Dev { project, common, once } => dev::run(&common, &project, once),
            Command::Compile(common) => compile::run(&common),
            Command::CompileWorker { stack, memory, cpu } => {
                return toolbay_sandbox::compile_worker(ByteSize::b(stack), memory, cpu);
            }
            Command::List { common, json } => list::run(&common, json),
            Command::Call { tool, arguments, common, json, usage } => {
                call::run(&common, tool, &arguments, call::Show { json, usage })
            }
        };
        result.unwrap_or_else(|error| {
            complain(&format!("{error:#}"));
            if error.is::<ConfigError>() { ExitCode::from(BAD_CONFIGURATION) } else { ExitCode::FAILURE }
        })
    }
}
