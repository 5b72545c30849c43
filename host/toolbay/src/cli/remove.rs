//! `toolbay remove`: removes a plugin from the plugin folder.

use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use toolbay_bundle::{PLUGINS_FILE_NAME, check_plugin_id};

use super::common::{Common, Listen};
use super::confirm;
use super::installation::Installation;
use super::output::print;
use super::plugin_file::printable_path;
use super::plugins_file::{read_plugins_file, write_entry};

#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The plugin, by the name of its file without `.wasm`
    plugin: String,
    /// Remove its grant, too
    #[arg(long)]
    grant: bool,
    /// Remove it without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(options: &Remove) -> anyhow::Result<ExitCode> {
    let config = options.common.load_config(true, &Listen::default())?;
    let (folder, id) = (&config.plugins, &options.plugin);
    check_plugin_id(id).map_err(|why| anyhow!(why))?;
    let has_entry = read_plugins_file(folder)?.plugins.contains_key(id);
    let removal = Installation::plan_removal(folder, id, options.grant);
    if !removal.replaces_something() && !has_entry {
        bail!("there is no plugin {id} in {}", printable_path(folder));
    }
    let mut changes = removal.changes();
    if has_entry {
        changes.push(format!("removes its entry in {PLUGINS_FILE_NAME}"));
    }
    for change in &changes {
        print(&format!("! {change}\n"));
    }
    if !options.yes {
        if !confirm::is_possible() {
            bail!("nothing was removed: run the command on a terminal, or add --yes");
        }
        let question = format!(
            "\nRemove {id} from {}? Type y for yes, anything else for no:",
            printable_path(folder)
        );
        if !confirm::ask_blocking(&question) {
            print("nothing was removed\n");
            return Ok(ExitCode::FAILURE);
        }
    }
    if removal.replaces_something() {
        removal
            .remove(folder)
            .with_context(|| format!("{id} was not removed, and nothing has changed"))?;
    }
    write_entry(folder, id, None)?;
    print(&format!("removed {id}\n"));
    let grant = format!("{id}.toml");
    if !options.grant && folder.join(&grant).symlink_metadata().is_ok() {
        print(&format!(
            "{grant} stays: it applies to the next plugin of this name. To remove it, too, use --grant\n"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
