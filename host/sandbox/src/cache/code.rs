//! Opens compiled code. This module contains all the unsafe code of the host.
//!
//! Compiled code is trusted: its behavior is checked when it is compiled, not when it is opened.
//! Both functions are therefore only for code that our compiler wrote and that no other user can
//! have changed. The cache ensures that with a private directory and an authentication code.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use wasmtime::Engine;
use wasmtime::component::Component;

/// Opens compiled code that our compiler wrote into our private directory. The descriptor, not the
/// name of the file, determines which file is mapped.
pub(crate) fn open_file(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if !path.exists() {
        // Without /proc, the code is copied instead of mapped.
        return open_from_memory(engine, &mut file.try_clone()?);
    }
    map_file(engine, &path)
}

/// Maps the file at the path that [`open_file`] determined.
fn map_file(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file is in a directory that only this user can write. Our compiler wrote all of
    // it, and it is never changed in place.
    #[expect(
        unsafe_code,
        reason = "native code of our own compiler; see the comment above and the module's"
    )]
    unsafe {
        Component::deserialize_file(engine, path)
    }
}

/// Creates a file in memory, for code that is not added to the cache.
pub(crate) fn create_memory_file() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("toolbay-code", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// Opens compiled code that our compiler wrote into `file`, which has no name.
pub(crate) fn open_from_memory(engine: &Engine, file: &mut File) -> wasmtime::Result<Component> {
    let mut code = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut code)?;
    // SAFETY: only our compiler, a child process that has ended, had access to the file, or the
    // file is in our private directory.
    #[expect(
        unsafe_code,
        reason = "native code of our own compiler; see the comment above and the module's"
    )]
    unsafe {
        Component::deserialize(engine, code)
    }
}

/// Checks the behavior of opened code, and which damage is detected even without the cache's
/// authentication code.
///
/// `cargo xtask miri` runs these tests under Miri as well. There, Wasmtime's interpreter runs the
/// code, because Miri cannot run machine code. An ordinary build compiles it beforehand, because
/// Cranelift would take too long.
#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use bytesize::ByteSize;
    use tempfile::TempDir;
    use toolbay_model::Limits;
    use wasmtime::component::{Instance, Linker};
    use wasmtime::{Config, InstanceAllocationStrategy, Store, StoreContextMut, Trap};

    use super::*;
    use crate::compile::engine;

    /// The variable that names the folder with [`MACHINE`] and [`INTERPRETED`].
    const FOLDER: &str = "TOOLBAY_MIRI";
    const MACHINE: &str = "machine.cwasm";
    const INTERPRETED: &str = "interpreted.cwasm";

    /// Enough for every call here except the endless one.
    const FUEL: u64 = 2_000;

    /// The size of an ELF header.
    const HEADER: usize = 64;

    /// Two core modules with a memory, a table, data and an import, so that every part of compiled
    /// code is used.
    const COMPONENT: &str = r#"
        (component
          (import "shout" (func $shout (param "text" string) (result string)))
          (core module $memory
            (memory (export "memory") 1)
            (global $free (mut i32) (i32.const 1024))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32)
              (global.set $free (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
              (global.get $free)
              (global.set $free (i32.add (global.get $free) (local.get 3)))))
          (core module $main
            (import "memory" "memory" (memory 1))
            (import "host" "shout" (func $shout (param i32 i32 i32)))
            (type $chosen (func (result i32)))
            (table 2 funcref)
            (elem (i32.const 0) $first $second)
            (data (i32.const 64) "hello, ")
            (func $first (result i32) (i32.const 64))
            (func $second (result i32) unreachable)
            (func (export "greet") (param $text i32) (param $length i32) (result i32)
              (local $from i32)
              (local.set $from (call_indirect (type $chosen) (i32.const 0)))
              (memory.copy (i32.const 256) (local.get $from) (i32.const 7))
              (memory.copy (i32.const 263) (local.get $text) (local.get $length))
              (call $shout (i32.const 256) (i32.add (local.get $length) (i32.const 7)) (i32.const 128))
              (i32.const 128))
            (func (export "grow") (result i32)
              (drop (memory.grow (i32.const 1)))
              (i32.store (i32.const 131068) (i32.const 42))
              (i32.load (i32.const 131068)))
            (func (export "outside") (result i32) (i32.load (i32.const 0x7fff0000)))
            (func (export "fail") (result i32) (call_indirect (type $chosen) (i32.const 1)))
            (func (export "endless") (result i32) (loop (br 0)) unreachable))
          (core instance $memory (instantiate $memory))
          (alias core export $memory "memory" (core memory $bytes))
          (alias core export $memory "realloc" (core func $realloc))
          (core func $shout' (canon lower (func $shout) (memory $bytes) (realloc $realloc)))
          (core instance $main (instantiate $main
            (with "memory" (instance $memory))
            (with "host" (instance (export "shout" (func $shout'))))))
          (func (export "greet") (param "text" string) (result string)
            (canon lift (core func $main "greet") (memory $bytes) (realloc $realloc)))
          (func (export "grow") (result u32) (canon lift (core func $main "grow")))
          (func (export "outside") (result u32) (canon lift (core func $main "outside")))
          (func (export "fail") (result u32) (canon lift (core func $main "fail")))
          (func (export "endless") (result u32) (canon lift (core func $main "endless"))))
    "#;

    const STACK: ByteSize = ByteSize::kib(512);

    /// The server's settings, without the pool.
    fn machine() -> Engine {
        engine::build_compiler(STACK).unwrap()
    }

    /// The server's settings for an interpreter on a machine that cannot reserve address space:
    /// Miri.
    fn interpreted() -> Config {
        let mut config = engine::config(STACK);
        config.target("pulley64").unwrap();
        config
            .signals_based_traps(false)
            .memory_reservation(1 << 20)
            .memory_guard_size(0);
        config
    }

    fn interpreter() -> Engine {
        Engine::new(interpreted().allocation_strategy(InstanceAllocationStrategy::OnDemand))
            .unwrap()
    }

    /// An engine that can run code here, with the server's pool for one component.
    fn pooled() -> Engine {
        if cfg!(miri) {
            // All memory of Miri is real.
            let few = Limits {
                memory: ByteSize::mib(1),
                memories: 1,
                instances: 2,
                table_elements: 16,
                ..Limits::CEILING
            };
            return Engine::new(
                interpreted().allocation_strategy(engine::pooling_strategy(1, 1, &few)),
            )
            .unwrap();
        }
        engine::build(1, STACK, &Limits::CEILING).unwrap().0
    }

    /// The engine that can run code here.
    fn engine() -> Engine {
        if cfg!(miri) { interpreter() } else { machine() }
    }

    /// The component as compiled for [`machine`] and for [`interpreted`].
    fn compiled() -> [Vec<u8>; 2] {
        if cfg!(miri) {
            let folder =
                PathBuf::from(std::env::var_os(FOLDER).expect("cargo xtask miri sets this"));
            return [MACHINE, INTERPRETED].map(|name| fs::read(folder.join(name)).unwrap());
        }
        let wasm = wat::parse_str(COMPONENT).unwrap();
        [machine(), interpreter()].map(|engine| engine.precompile_component(&wasm).unwrap())
    }

    /// The component as compiled for [`engine`].
    fn code() -> Vec<u8> {
        let [machine, interpreted] = compiled();
        if cfg!(miri) { interpreted } else { machine }
    }

    /// Creates a file with this content. Dropping the directory removes it.
    fn file(content: &[u8]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code");
        fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn opened_from_memory(engine: &Engine, content: &[u8]) -> wasmtime::Result<Component> {
        // Miri has no files in memory.
        let mut file = if cfg!(miri) {
            tempfile::tempfile().unwrap()
        } else {
            create_memory_file().unwrap()
        };
        file.write_all(content).unwrap();
        open_from_memory(engine, &mut file)
    }

    fn opened_from_file(engine: &Engine, content: &[u8]) -> wasmtime::Result<Component> {
        let (_folder, path) = file(content);
        // Miri has separate descriptors, which /proc does not list.
        if cfg!(miri) {
            map_file(engine, &path)
        } else {
            open_file(engine, &File::open(path).unwrap())
        }
    }

    type Opener = fn(&Engine, &[u8]) -> wasmtime::Result<Component>;

    /// Both ways to open code.
    const WAYS: [Opener; 2] = [opened_from_memory, opened_from_file];

    /// Creates an instance in a store like that of a call.
    fn instance(component: &Component) -> (Store<usize>, Instance) {
        let engine = component.engine();
        let mut linker = Linker::new(engine);
        let shout = |mut store: StoreContextMut<'_, usize>, (text,): (String,)| {
            *store.data_mut() += 1;
            Ok((text.to_uppercase(),))
        };
        linker.root().func_wrap("shout", shout).unwrap();
        let mut store = Store::new(engine, 0);
        store.set_fuel(FUEL).unwrap();
        store.set_epoch_deadline(1);
        let instance = linker.instantiate(&mut store, component).unwrap();
        (store, instance)
    }

    fn greet(store: &mut Store<usize>, instance: &Instance) -> String {
        let greet = instance
            .get_typed_func::<(&str,), (String,)>(&mut *store, "greet")
            .unwrap();
        greet.call(&mut *store, ("Miri",)).unwrap().0
    }

    fn number(component: &Component, name: &str) -> Result<u32, Trap> {
        let (mut store, instance) = instance(component);
        let function = instance
            .get_typed_func::<(), (u32,)>(&mut store, name)
            .unwrap();
        function
            .call(&mut store, ())
            .map(|(number,)| number)
            .map_err(|error| error.downcast().unwrap())
    }

    #[test]
    fn opened_code_runs() {
        let code = code();
        for engine in [engine(), pooled()] {
            for open in WAYS {
                let component = open(&engine, &code).unwrap();
                let (mut store, instance) = instance(&component);
                assert_eq!(greet(&mut store, &instance), "HELLO, MIRI");
                assert_eq!(greet(&mut store, &instance), "HELLO, MIRI");
                assert_eq!(*store.data(), 2);
                // The pool has one slot.
                drop(store);
                assert_eq!(number(&component, "grow"), Ok(42));
            }
        }
    }

    #[test]
    fn traps_of_opened_code_are_distinguished() {
        let engine = engine();
        let code = code();
        for open in WAYS {
            let component = open(&engine, &code).unwrap();
            assert_eq!(number(&component, "outside"), Err(Trap::MemoryOutOfBounds));
            assert_eq!(
                number(&component, "fail"),
                Err(Trap::UnreachableCodeReached)
            );
            assert_eq!(number(&component, "endless"), Err(Trap::OutOfFuel));
            engine.increment_epoch();
            assert_eq!(
                number(&component, "grow"),
                Ok(42),
                "a deadline is counted from when the store was made"
            );
        }
    }

    #[test]
    fn code_stays_mapped_while_an_instance_uses_it() {
        let code = code();
        for open in WAYS {
            let engine = engine();
            let component = open(&engine, &code).unwrap();
            let (mut store, instance) = instance(&component);
            drop((component, engine));
            let used = std::thread::spawn(move || greet(&mut store, &instance));
            assert_eq!(used.join().unwrap(), "HELLO, MIRI");
        }
    }

    #[test]
    fn threads_open_use_and_drop_code_at_the_same_time() {
        let engine = engine();
        let code = code();
        let shared = opened_from_file(&engine, &code).unwrap();
        std::thread::scope(|scope| {
            for open in WAYS {
                let engine = &engine;
                let code = &code;
                let shared = &shared;
                scope.spawn(move || {
                    for component in [open(engine, code).unwrap(), shared.clone()] {
                        let (mut store, instance) = instance(&component);
                        assert_eq!(greet(&mut store, &instance), "HELLO, MIRI");
                    }
                });
            }
        });
    }

    #[test]
    fn code_for_another_machine_or_other_settings_is_refused() {
        let engine = engine();
        let [machine, interpreted] = compiled();
        let other = if cfg!(miri) { machine } else { interpreted };
        let mut config = engine.config().clone();
        let without_fuel = Engine::new(config.consume_fuel(false)).unwrap();
        for open in WAYS {
            let reason = |engine, code| open(engine, code).unwrap_err().root_cause().to_string();
            let error = reason(&engine, &other);
            assert!(
                error.starts_with("Module was compiled for architecture '"),
                "{error}"
            );
            let error = reason(&without_fuel, &code());
            assert_eq!(
                error,
                "Module was compiled with fuel support but it is not enabled for the host"
            );
        }
    }

    #[test]
    fn code_that_ends_early_is_refused() {
        let engine = engine();
        let code = code();
        let few = (1..16).map(|part| code.len() * part / 16);
        // The section table is at the end. Miri fills a mapped file with zeros to the end of its
        // page.
        for length in few.chain([1, HEADER - 1, HEADER, code.len() - 4096]) {
            for open in WAYS {
                assert!(
                    open(&engine, &code[..length]).is_err(),
                    "{length} of {}",
                    code.len()
                );
            }
        }
        for length in [0, code.len() - 1] {
            assert!(
                opened_from_memory(&engine, &code[..length]).is_err(),
                "{length}"
            );
            // Wasmtime's replacement for a mapping under Miri cannot be empty, either.
            assert!(
                cfg!(miri) || opened_from_file(&engine, &code[..length]).is_err(),
                "{length}"
            );
        }
    }

    #[test]
    fn a_flipped_bit_in_the_identification_of_code_is_detected() {
        let engine = engine();
        let code = code();
        // Magic number, class, byte order and version, and the position and number of the sections.
        // Wasmtime ignores the rest of the header. Only the authentication code protects the bytes
        // after the header.
        for at in (0..7).chain(40..48).chain(58..HEADER) {
            let mut damaged = code.clone();
            damaged[at] ^= 1;
            for open in WAYS {
                assert!(open(&engine, &damaged).is_err(), "{at}");
            }
        }
    }

    /// Writes the files that Miri opens.
    #[cfg(not(miri))]
    #[test]
    #[ignore = "a step of `cargo xtask miri`"]
    fn code_for_miri_is_written() {
        let folder = PathBuf::from(std::env::var_os(FOLDER).expect("cargo xtask miri sets this"));
        for (name, code) in [MACHINE, INTERPRETED].into_iter().zip(compiled()) {
            fs::write(folder.join(name), code).unwrap();
        }
    }
}
