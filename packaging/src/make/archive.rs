//! The tar archive: one directory that contains everything and can be unpacked anywhere.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::kit::Kit;
use crate::release::NAME;
use crate::tarred::{Tarred, gzip};

/// Returns the name of the archive.
pub(crate) fn file(kit: &Kit) -> String {
    format!("{}.tar.gz", folder(kit))
}

/// Returns the name of the directory in it.
pub(crate) fn folder(kit: &Kit) -> String {
    format!("{NAME}-{}-{}", kit.release.version, kit.program.triple())
}

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let path = kit.out.join(file(kit));
    let out =
        File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    let mut tarred = Tarred::new(gzip(out), kit.release.time);
    for file in kit.content.all() {
        tarred.copy(
            &format!("{}/{}", folder(kit), file.to),
            file.mode(),
            &file.from,
        )?;
    }
    tarred.finish()?.finish()?;
    Ok(vec![path])
}
