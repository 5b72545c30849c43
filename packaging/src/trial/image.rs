//! Runs an image as a container engine does: checks the digests, unpacks the layers and starts the
//! command as the user that the image names, with a read-only root and without a network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use toolbay_testkit::command;

use super::{Installed, Room};
use crate::checksums::digest;
use crate::content::BINARY;
use crate::kit::Kit;
use crate::make::image::USER;

/// Enters the container: a system whose root is the image, with the devices that every container
/// has. If the program needs the libraries of this machine, they are mounted.
const CONTAINER: &str = r#"
set -e
root=$1; user=$2; libraries=$3; shift 3
mount --bind "$root" "$root"
for name in proc tmp home/nonroot $libraries; do mkdir -p "$root/$name"; done
mount --rbind /proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -p "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero random urandom; do
  touch "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
for name in $libraries; do mount --rbind "/$name" "$root/$name"; done
mount -o remount,bind,ro "$root"
exec chroot $user "$root" "$@"
"#;

pub(crate) fn install(kit: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    let layout = room.installed().join("layout");
    let system = room.installed().join("root");
    for folder in [&layout, &system] {
        fs::create_dir(folder)?;
    }
    for file in files {
        command::run(
            room.command("tar")
                .arg("-xf")
                .arg(file)
                .arg("-C")
                .arg(&layout),
        )?;
    }
    let index = json(&layout.join("index.json"))?;
    let manifest = json(&blob(
        &layout,
        index.pointer("/manifests/0").context("no manifest")?,
    )?)?;
    let config = json(&blob(
        &layout,
        manifest.get("config").context("no configuration")?,
    )?)?;
    for layer in manifest
        .get("layers")
        .and_then(Value::as_array)
        .context("no layers")?
    {
        command::run(
            room.command("tar")
                .args(["-xzpf"])
                .arg(blob(&layout, layer)?)
                .arg("-C")
                .arg(&system),
        )?;
    }
    let said = |path: &str| config.pointer(path).with_context(|| format!("no {path}"));
    ensure!(
        said("/config/User")? == &Value::from(format!("{USER}:{USER}")),
        "another user"
    );
    ensure!(
        said("/config/Cmd/0")? == "serve"
            && said("/config/Entrypoint/0")? == &Value::from(format!("/usr/{BINARY}"))
    );
    let env = said("/config/Env")?.as_array().context("no variables")?;
    let variables = env
        .iter()
        .filter_map(|variable| variable.as_str()?.split_once('='));

    // Root switches to the user of the image. Other users have no second user and keep their own
    // ID.
    let is_root = command::output(room.command("id").arg("-u"))?.trim() == "0";
    let mut words: Vec<&str> = vec!["unshare", "--mount", "--net", "--ipc"];
    let user = format!("--userspec={USER}:{USER}");
    if !is_root {
        words.push("--map-root-user");
    }
    let system = system.display().to_string();
    let libraries = if kit.program.is_static {
        ""
    } else {
        "lib lib64 usr/lib"
    };
    words.extend([
        "sh",
        "-c",
        CONTAINER,
        "sh",
        &system,
        if is_root { &user } else { "" },
        libraries,
        "/usr/bin/toolbay",
    ]);
    let words = words.into_iter().map(str::to_owned).collect();
    let mut variables: Vec<_> = variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    // `unshare` and `sh` are found by `PATH`, and the image contains nothing else that it could
    // resolve to.
    variables.retain(|(name, _)| name != "PATH");
    Ok(Installed {
        words,
        variables,
        is_furnished: true,
        ..Installed::default()
    })
}

/// Returns the file that a descriptor refers to, after checking its size and digest.
fn blob(layout: &Path, descriptor: &Value) -> Result<PathBuf> {
    let named = descriptor
        .get("digest")
        .and_then(Value::as_str)
        .context("no digest")?;
    let named = named
        .strip_prefix("sha256:")
        .context("another kind of digest")?;
    let path = layout.join("blobs/sha256").join(named);
    ensure!(
        digest(&path)? == named,
        "{} has another digest",
        path.display()
    );
    let size = fs::metadata(&path)?.len();
    ensure!(
        descriptor.get("size").and_then(Value::as_u64) == Some(size),
        "{} has another size",
        path.display()
    );
    Ok(path)
}

fn json(path: &Path) -> Result<Value> {
    serde_json::from_slice(&fs::read(path)?)
        .with_context(|| format!("failed to read {}", path.display()))
}
