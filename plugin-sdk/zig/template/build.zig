const std = @import("std");

pub fn build(b: *std.Build) void {
    const toolbay = b.createModule(.{ .root_source_file = b.path("toolbay/toolbay.zig") });
    const plugin: std.Build.Module.CreateOptions = .{
        .root_source_file = b.path("src/{{ident}}.zig"),
        .imports = &.{.{ .name = "toolbay", .module = toolbay }},
    };

    // `zig build` builds the plugin. Its root is the SDK, which exports your
    // tools.
    const component = b.addExecutable(.{
        .name = "{{name}}",
        .root_module = b.createModule(.{
            .root_source_file = b.path("toolbay/main.zig"),
            .target = b.resolveTargetQuery(.{ .cpu_arch = .wasm32, .os_tag = .wasi }),
            .optimize = .safe,
            .strip = true,
            .imports = &.{
                .{ .name = "toolbay", .module = toolbay },
                .{ .name = "plugin", .module = b.createModule(plugin) },
            },
        }),
    });
    component.wasi_exec_model = .reactor;
    component.entry = .disabled;
    component.rdynamic = true;
    // Zig's default is 16 MiB, for every call.
    component.stack_size = 1 << 20;
    b.installArtifact(component);

    // `zig build test` runs the native tests.
    var native = plugin;
    native.target = b.graph.host;
    const tests = b.addTest(.{ .root_module = b.createModule(native) });
    b.step("test", "Run the tests").dependOn(&b.addRunArtifact(tests).step);
}
