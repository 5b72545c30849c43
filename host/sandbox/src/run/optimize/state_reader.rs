//! Reads the state of an initialized plugin.

use wasmtime::Store;
use wasmtime::component::types::{ComponentItem, Type};
use wasmtime::component::{Component, Instance, WasmList};

use super::init_failure::InitFailure;
use crate::compile::memory_snapshot::{MemorySnapshot, SnapshotValue};
use crate::compile::preinit::ACCESS_EXPORT;
use crate::store::state::StoreState;

/// Reads all memories and globals.
pub(super) async fn read_state(
    store: &mut Store<StoreState>,
    instance: &Instance,
    component: &Component,
) -> wasmtime::Result<MemorySnapshot> {
    let engine = store.engine().clone();
    let mut image = MemorySnapshot::new();
    let ty = component.component_type();
    let Some(ComponentItem::ComponentInstance(access)) =
        ty.get_export(&engine, ACCESS_EXPORT).map(|item| item.ty)
    else {
        return Ok(image);
    };
    let missing = || wasmtime::Error::from(InitFailure("its state cannot be read".to_owned()));
    let within = instance
        .get_export_index(&mut *store, None, ACCESS_EXPORT)
        .ok_or_else(missing)?;
    for (name, item) in access.exports(&engine) {
        let ComponentItem::ComponentFunc(ty) = item.ty else {
            continue;
        };
        let index = instance
            .get_export_index(&mut *store, Some(&within), name)
            .ok_or_else(missing)?;
        let value = match ty.results().next() {
            Some(Type::S32) => {
                let show = instance.get_typed_func::<(), (i32,)>(&mut *store, index)?;
                SnapshotValue::I32(show.call_async(&mut *store, ()).await?.0)
            }
            Some(Type::S64) => {
                let show = instance.get_typed_func::<(), (i64,)>(&mut *store, index)?;
                SnapshotValue::I64(show.call_async(&mut *store, ()).await?.0)
            }
            Some(Type::Float32) => {
                let show = instance.get_typed_func::<(), (f32,)>(&mut *store, index)?;
                SnapshotValue::F32(show.call_async(&mut *store, ()).await?.0.to_bits())
            }
            Some(Type::Float64) => {
                let show = instance.get_typed_func::<(), (f64,)>(&mut *store, index)?;
                SnapshotValue::F64(show.call_async(&mut *store, ()).await?.0.to_bits())
            }
            Some(Type::List(_)) => {
                let show = instance.get_typed_func::<(), (WasmList<u8>,)>(&mut *store, index)?;
                let (bytes,) = show.call_async(&mut *store, ()).await?;
                SnapshotValue::Memory(bytes.as_le_slice(&*store).to_vec())
            }
            _ => return Err(missing()),
        };
        image.insert(name.to_owned(), value);
    }
    Ok(image)
}
