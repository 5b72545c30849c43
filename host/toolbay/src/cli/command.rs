//! The subcommands of the program, with their options and help.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;

use super::common::{Common, Listen, Record, Settings};
use super::{
    add, approvals, audit, install, lock, new, optimize, publish, questions, remove, replay, state,
    sync, token, update,
};

/// The subcommand to run, with its options.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the tools over MCP, on standard input and output or over HTTP
    Serve {
        /// Serve only this plugin file, with the files next to it that belong to it, such as its
        /// grant; instead of a plugin folder
        #[arg(value_name = "FILE", conflicts_with_all = ["plugins", "sync"])]
        file: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        listen: Listen,
        /// First get what toolbay.plugins.toml pins, as `toolbay sync` does. The server starts also if
        /// a plugin cannot be downloaded
        #[arg(long)]
        sync: bool,
    },
    /// Make a folder to serve: a toolbay.toml that explains its keys, and sample plugins. Never
    /// overwrites a file
    Init {
        /// The folder, which is created if it does not exist
        #[arg(value_name = "DIR", default_value = ".")]
        folder: PathBuf,
        /// The samples to copy: names with commas between them, all, or none [default: asks on a
        /// terminal, otherwise all]
        #[arg(long, value_name = "NAMES")]
        samples: Option<String>,
        /// The folder that has the samples [default: the one in the package that this program was
        /// installed with]
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
    },
    /// List plugins, what they offer and their grants, and say why a file is refused
    ///
    /// The exit code is 0 even if files are refused; with --json, each of them has the status
    /// "refused". To get exit code 1 if a file is refused, use `toolbay compile`.
    List {
        /// Only this plugin, by the name of its file without `.wasm`
        plugin: Option<String>,
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Inspect a plugin file without serving it: its kind, imports and tools
    Check {
        /// A plugin file, or a project folder with a plugin.toml
        file: PathBuf,
        #[command(flatten)]
        settings: Settings,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check what a server needs to start, without serving: the configuration, certificates, keys,
    /// the address, the folders that it writes, and every plugin with its grant
    ///
    /// The exit code is 1 if a check found an error, and 64 if the configuration is invalid.
    CheckConfig {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        listen: Listen,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check what this machine offers a server: the kernel, limits, folder events, the compile
    /// cache, and the clients that start Toolbay
    ///
    /// The exit code is 1 if a check found an error, and 64 if the configuration is invalid.
    Doctor {
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Only confine this process, and print what the kernel lacks (internal: toolbay starts
        /// this itself)
        #[arg(long, hide = true)]
        confinement_only: bool,
    },
    /// Create a plugin project that is ready to build
    New {
        /// The folder to create; the last part of its path is the plugin's name, such as my-weather
        name: PathBuf,
        /// The programming language; without it, the command lists them and asks on the terminal
        #[arg(long, value_name = "LANGUAGE")]
        language: Option<new::Language>,
        /// Export plain WIT functions instead of using an SDK; only for rust, javascript,
        /// typescript and python
        #[arg(long)]
        plain: bool,
        /// Make an MCP server with the official TypeScript SDK instead of using Toolbay's; only for
        /// typescript
        #[arg(long, conflicts_with = "plain")]
        server: bool,
    },
    /// Add the server to the configuration of an MCP client, such as Claude Code or VS Code;
    /// without a client, list them
    ///
    /// The entry has absolute paths of this program and of the plugin folder. The comments, order
    /// and formatting of the file stay the same. A copy of the previous file is saved next to it.
    /// An entry that already exists is not written twice.
    Install(install::Install),
    /// Take the server out of the configuration of an MCP client
    Uninstall(install::Uninstall),
    /// Rebuild a plugin after each change, copy it into the plugin folder, and make the example
    /// call that plugin.toml defines
    Dev {
        /// The project folder, which contains plugin.toml
        #[arg(default_value = ".")]
        project: PathBuf,
        #[command(flatten)]
        common: Common,
        /// Build, copy and call once, then exit
        #[arg(long)]
        once: bool,
        /// The answer to a question of the example call, as for `toolbay call`; repeat it for several
        #[arg(long, value_name = "KEY=ANSWER")]
        answer: Vec<questions::AnswerOption>,
    },
    /// Make an archive of a plugin, with its prompts, resources, skill, README and license, to hand
    /// on
    ///
    /// The archive, NAME-VERSION.bay, contains the grant that the author proposes, and never a
    /// grant. The same files always make the same archive.
    Pack {
        /// A project folder with a plugin.toml, or the files of a plugin and documents such as
        /// README.md
        #[arg(value_name = "PATH", default_value = ".")]
        paths: Vec<PathBuf>,
        /// The folder for the archive
        #[arg(short, long, value_name = "DIR", default_value = ".")]
        output: PathBuf,
    },
    /// Add a plugin that somebody else made to the plugin folder
    ///
    /// Shows the digest, the metadata, the tools and the proposed grant, and asks before it adds
    /// anything. Nothing that comes with a plugin is a grant: on a terminal, a second question
    /// offers to write the proposed one.
    ///
    /// A plugin of a registry or a URL gets an entry in toolbay.plugins.toml, which pins the digest.
    Add(add::Add),
    /// Publish a plugin in an OCI registry, with its metadata as annotations
    ///
    /// Other tools for components read the component, and `toolbay add` also the files next to it. A
    /// grant is never published. The credentials are those of `docker login`.
    Publish(publish::Publish),
    /// Remove a plugin from the plugin folder, and from toolbay.plugins.toml
    ///
    /// Shows what is removed, and asks. The grant stays unless --grant is set.
    Remove(remove::Remove),
    /// Follow the references in toolbay.plugins.toml: if a tag or a URL names another version, show
    /// it, ask, replace the plugin and pin the new digest
    ///
    /// The exit code is 1 if a plugin could not be updated. The grants stay.
    Update(update::Update),
    /// Show which references in toolbay.plugins.toml name another version than the pinned one
    ///
    /// Changes nothing. The exit code is 1 if one does, or if a reference cannot be read.
    Outdated(update::Outdated),
    /// Get what toolbay.plugins.toml pins: download each plugin whose files are missing or differ
    ///
    /// A plugin that cannot be downloaded stays as it is, and does not stop the others; the exit
    /// code is then 1. Other plugins in the folder are not touched.
    Sync(sync::Sync),
    /// Approve the current versions of plugins: write toolbay.lock in the plugin folder, which pins
    /// them
    ///
    /// Shows how the plugins differ from the file, and asks before it replaces an approved version.
    /// From then on, a server serves only the approved versions: a plugin that changes is held until
    /// it is approved. The file contains the digests, and the texts that models and users read, so
    /// that changes to it can be reviewed.
    Lock(lock::Lock),
    /// Show how plugins differ from their approved versions in toolbay.lock
    ///
    /// A line with ! is a sign that a text may deceive a model or a user. The exit code is 1 if a
    /// plugin differs.
    Diff(lock::Diff),
    /// Compile every plugin into the compile cache, so that servers start faster
    ///
    /// The exit code is 1 if a file is refused or if compiled code cannot be written to the cache.
    Compile(Common),
    /// Run a plugin's initialization once, and write a plugin file that starts with the resulting
    /// state
    ///
    /// Calls of the new file skip what the initialization does: its function `wizer-initialize`, if
    /// it exports one, and listing what it offers, which interpreters prepare themselves for. Each
    /// call is still a new instance. Nothing is granted to the initialization, and it ends with an
    /// error if it uses something whose answer would become part of the file, such as the
    /// environment or a random number.
    Optimize {
        /// A plugin file, or a project folder with a plugin.toml
        file: PathBuf,
        /// The file to write [default: the plugin's name with .optimized.wasm, in the current
        /// folder]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the file to write if it exists, also if it is the plugin file itself
        #[arg(long)]
        force: bool,
        /// A capability that the initialization may use although its result becomes part of the file;
        /// repeat it for several
        #[arg(long, value_name = "WHAT")]
        allow: Vec<optimize::AllowedCapability>,
        /// A call to make before the state is saved, as TOOL or TOOL=ARGUMENTS with a JSON object;
        /// repeat it for several. The memory of the plugin after these calls becomes part of the
        /// file
        #[arg(long, value_name = "CALL")]
        call: Vec<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Compile standard input to standard output (internal: toolbay starts this itself)
    #[command(hide = true)]
    CompileWorker {
        /// Native stack of a guest, in bytes
        stack: u64,
        /// Limit of the address space, in bytes
        memory: u64,
        /// Limit of CPU time, in seconds
        cpu: u64,
        /// Components may have async functions
        #[arg(long = "async")]
        concurrent: bool,
        /// Add exports that show the state of the component, instead of compiling it
        #[arg(long)]
        instrument: bool,
        /// Write the state of an instance into the component, instead of compiling it
        #[arg(long, conflicts_with = "instrument")]
        snapshot: bool,
    },
    /// Confine this process as a server would be, then try what standard input says (internal: for
    /// tests)
    #[command(hide = true)]
    Escape {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        listen: Listen,
    },
    /// Start programs that print secrets (internal: toolbay starts this itself)
    #[command(hide = true)]
    SecretWorker {
        /// The plugin folder, with the grants that name the programs
        folder: PathBuf,
        /// Folders that the server may write: no program in them is started
        writable: Vec<PathBuf>,
    },
    /// Start the program that is notified of waiting calls (internal: toolbay starts this itself)
    #[command(hide = true)]
    NotifyWorker {
        /// The program and its arguments
        #[arg(required = true, last = true)]
        words: Vec<String>,
    },
    /// Read the audit log, or find out whether it was changed
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Generate a bearer token for HTTP, and the lines to add to toolbay.toml; list or revoke tokens
    ///
    /// The token is printed once, on standard error. The lines go to standard output, so you can
    /// append them: toolbay token NAME >> toolbay.toml
    Token(token::TokenCommand),
    /// Show, copy or delete what plugins keep from one call to the next
    ///
    /// Also works while a server is running. If the server is using the state continuously, the
    /// command waits up to five seconds, then fails.
    State {
        #[command(subcommand)]
        command: state::StateCommand,
    },
    /// Open the console of a server that a client has started, in a browser on this machine
    ///
    /// Prints an address that opens the console once, and forwards the connections of a browser
    /// until Ctrl-C, or until the server ends. If several servers are running, it lists them (exit
    /// code 64).
    Console {
        /// The process number of the server; needed if several are running
        #[arg(long, value_name = "N")]
        pid: Option<u32>,
    },
    /// List the calls that wait for an operator, and answer them, at a server that a client has
    /// started
    ///
    /// Without a subcommand, it lists them. The first answer counts, here, in the console or at the
    /// client.
    Approvals {
        #[command(subcommand)]
        command: Option<approvals::ApprovalsCommand>,
        /// The process number of the server; needed if several are running
        #[arg(long, global = true, value_name = "N")]
        pid: Option<u32>,
    },
    /// Make one call many times, and print how long it takes and what it uses
    ///
    /// The calls run one after another, with the same limits and the same grant as when the tool is
    /// served. One call before them is not measured.
    Bench {
        /// The tool's name, as `toolbay list` shows it; or a plugin file, followed by the name
        #[arg(value_name = "TOOL")]
        target: String,
        /// The arguments, as for `toolbay call`
        #[arg(value_name = "ARGUMENT")]
        arguments: Vec<String>,
        #[command(flatten)]
        common: Common,
        /// The number of measured calls
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        calls: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the running calls of servers of this user: tool, plugin, caller, age and progress; or
    /// stop one
    ///
    /// The numbers of calls are those of their server. A stopped call ends with an error that its
    /// client receives, and the audit log has a line about it.
    Ps {
        /// Only the server with this process number
        #[arg(long, value_name = "N")]
        pid: Option<u32>,
        /// Stop the call with this number
        #[arg(long, value_name = "CALL", conflicts_with = "json")]
        stop: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the script with which a shell completes commands and options
    ///
    /// For bash: toolbay completions bash > ~/.local/share/bash-completion/completions/toolbay
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages into a folder (internal: packages are made with it)
    #[command(hide = true)]
    Manual {
        /// The folder, which must exist
        folder: PathBuf,
    },
    /// Run recorded calls again, and show what differs
    ///
    /// Each call runs in its own sandbox, with the limits, the clocks, the random numbers and the
    /// responses that were recorded: no request is sent, no file is read and no state is changed.
    /// The exit code is 1 if a result differs, or if no call could be run again.
    Replay {
        /// The recording, as `toolbay serve --record` writes it
        file: PathBuf,
        /// Run the calls of one plugin with this plugin file instead of the one in the plugin
        /// folder, and no others. The plugin is the one with the name of the file, or the one named
        /// before it: ID=FILE
        #[arg(long, value_name = "FILE")]
        plugin: Option<String>,
        /// Run only calls of the tools that fit this pattern, such as `weather.*`
        #[arg(long, value_name = "PATTERN", value_parser = replay::pattern)]
        tool: Option<toolbay_mcp::NamePattern>,
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Call one tool, with the same limits as when it is served
    ///
    /// With a plugin file before the tool, such as `toolbay call weather.wasm forecast`, only that
    /// plugin is loaded: with the files next to it that belong to it, such as its grant
    /// weather.toml, exactly as in a plugin folder.
    Call {
        /// The tool's name, as `toolbay list` shows it; or a plugin file, followed by the name
        #[arg(value_name = "TOOL")]
        target: String,
        /// The arguments: KEY=VALUE for each, with the type of the tool's input schema; or all as
        /// one JSON object; or - to read that from standard input. KEY=@FILE takes the value from a
        /// file, KEY:=JSON is a value of any type, OUTER.INNER=VALUE sets a member of an object, and
        /// a repeated KEY adds an item to an array
        #[arg(value_name = "ARGUMENT")]
        arguments: Vec<String>,
        #[command(flatten)]
        common: Common,
        /// Print the complete result as JSON
        #[arg(long)]
        json: bool,
        /// Print the call's usage next to its limits
        #[arg(long)]
        usage: bool,
        /// Save the images, audio and files of the result in this folder. No file is replaced
        #[arg(long, value_name = "DIR", conflicts_with = "task")]
        output: Option<PathBuf>,
        /// Call like a client that supports tasks: a call that takes long becomes a task, and its
        /// status is printed
        #[arg(long, conflicts_with = "usage")]
        task: bool,
        /// Allow the call if the grant requires a person to do so; without this option, the command
        /// asks on the terminal
        #[arg(long)]
        yes: bool,
        /// The answer to a question that the tool asks, by the key of the question: the fields of a
        /// form as a JSON object, such as 'sure={"sure":true}', the text of a model or the URIs of
        /// folders as JSON, accept for a page, decline, or cancel; repeat it for several. Without
        /// this option, the command asks on the terminal
        #[arg(long, value_name = "KEY=ANSWER", conflicts_with = "task")]
        answer: Vec<questions::AnswerOption>,
        #[command(flatten)]
        record: Record,
    },
}
