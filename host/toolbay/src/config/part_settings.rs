//! The settings of each part of the server, derived from the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use toolbay_catalog::{DescribeLimits, LoadPolicy};
use toolbay_model::{ClampedLimit, Limits, LimitsPatch};
use toolbay_sandbox::{CompileLimits, SandboxSettings};
use toolbay_state::StateStore;

use super::Config;
use super::compile::CompileConfig;
use super::describe::Describe;

impl Config {
    /// Returns the rules for loading plugins, with limits clamped to the ceilings.
    pub fn load_policy(&self) -> LoadPolicy {
        let (limits, ceiling) = self.effective_limits();
        let describe_patch = LimitsPatch {
            fuel: Some(self.describe.fuel),
            timeout: Some(self.describe.timeout),
            ..LimitsPatch::default()
        };
        let (describe_limits, _) = Limits::DEFAULT.with(&describe_patch, &ceiling);
        LoadPolicy {
            limits,
            ceiling,
            describe_limits,
            rate_limit: self.rate_limit,
            require_approval: self.require_approval,
            approve_by: self.approve_by,
            max_component_size: self.server.component_size,
            description_limits: self.description_limits(),
            guarded_paths: self.guarded_paths(),
            reachable_files: None,
            writable_paths: None,
        }
    }

    /// Returns the maximum size of a plugin's description.
    fn description_limits(&self) -> DescribeLimits {
        let Describe {
            tools,
            prompts,
            resources,
            schemas,
            size,
            skills,
            fuel: _,
            timeout: _,
        } = self.describe;
        DescribeLimits {
            tools,
            prompts,
            resources,
            schemas,
            size,
            skills,
        }
    }

    /// Returns the protocol options that do not depend on the transport.
    pub(crate) fn protocol_options(&self) -> toolbay_mcp::ProtocolOptions {
        toolbay_mcp::ProtocolOptions {
            page_size: self.page_size,
            includes_usage: self.usage,
            is_traced: self.otel.traces && self.otel.is_enabled(),
            max_message_size: self.server.request_size,
            max_total_request_size: self.server.request_memory(),
            grace_period: self.server.grace_period,
            tasks: self.tasks.options(),
            server: self.server.info(),
            schemas: self.server.schemas,
        }
    }

    /// Returns the settings for [`toolbay_sandbox::Sandbox::new`].
    ///
    /// # Errors
    ///
    /// The path of the running executable, which compiles plugins, cannot be determined.
    pub fn sandbox_settings(&self) -> std::io::Result<SandboxSettings> {
        // On Linux, this path leads to the running executable even after it was replaced on disk.
        let running = PathBuf::from("/proc/self/exe");
        let compiler = if running.exists() {
            running
        } else {
            std::env::current_exe()?
        };
        let calls = u32::try_from(self.server.max_entered_calls()).unwrap_or(u32::MAX);
        let (ceiling, _) = self.ceiling();
        let CompileConfig {
            memory,
            cpu_time,
            timeout,
            ..
        } = self.compile;
        Ok(SandboxSettings {
            max_calls: calls,
            max_waiting_calls: u32::try_from(self.server.suspended_calls).unwrap_or(u32::MAX),
            stack_size: self.server.stack_size,
            max_limits: ceiling,
            allow_async: self.engine.concurrent,
            compiler: Some(compiler),
            compile_limits: CompileLimits {
                memory,
                cpu: cpu_time,
                timeout,
            },
            cache: self.compile.cache(),
            http_client: self.http_client.options(),
            state: self
                .database()
                .map(|database| Arc::new(database) as Arc<dyn StateStore>),
            scratch: self.server.scratch(),
        })
    }

    /// Returns one line for each server-wide limit that the ceilings lowered, and for each ceiling
    /// above [`Limits::UTMOST`].
    pub fn clamp_messages(&self) -> Vec<String> {
        let (ceiling, lowered_ceilings) = self.ceiling();
        let (_, clamps) = Limits::DEFAULT.with(&self.limits, &ceiling);
        let ceiling_message = |ClampedLimit {
                                   key,
                                   requested: asked,
                                   ceiling,
                               }: &ClampedLimit| {
            let requested = asked.to_config_string();
            let ceiling = ceiling.to_config_string();
            format!(
                "ceilings.{key} = {requested} was lowered to {ceiling}, the maximum that this server can allow"
            )
        };
        lowered_ceilings
            .iter()
            .map(ceiling_message)
            .chain(clamps.iter().map(ToString::to_string))
            .collect()
    }

    /// Returns the default limits and the ceilings, both after clamping.
    pub fn effective_limits(&self) -> (Limits, Limits) {
        let (ceiling, _) = self.ceiling();
        let (limits, _) = Limits::DEFAULT.with(&self.limits, &ceiling);
        (limits, ceiling)
    }

    /// Returns the ceilings after clamping, and one [`ClampedLimit`] for each lowered ceiling.
    fn ceiling(&self) -> (Limits, Vec<ClampedLimit>) {
        // A call that may hold more memory than all calls together would never be admitted.
        let utmost = Limits {
            memory: Limits::UTMOST.memory.min(self.server.memory()),
            ..Limits::UTMOST
        };
        Limits::CEILING.with(&self.ceilings, &utmost)
    }
}
