//! Views of plugins (MCP Apps): the metadata that clients receive, the limits of the grant, and the
//! tools with a view.

use serde_json::{Value, json};

use crate::support::{
    Folder, MODERN, StdioServer, TinyComponent, TinyTool, ToolbayCommand, library, sample,
};

/// The page of a view that is a file.
const PAGE: &str = "<!doctype html><title>Page</title>";

fn component_with_view(name: &str, uri: &str) -> Vec<u8> {
    let meta = json!({"ui": {"resourceUri": uri}, "example.com/x": 1}).to_string();
    TinyComponent::with_tools(vec![TinyTool {
        meta: Some(meta),
        ..TinyTool::new(name)
    }])
    .build()
}

/// Returns the metadata of an entry in a list of tools or resources.
fn meta<'a>(entries: &'a [Value], key: &str, name: &str) -> &'a Value {
    &entries.iter().find(|entry| entry[key] == name).unwrap()["_meta"]
}

/// Writes a file below the plugin folder.
fn write(folder: &Folder, path: &str, text: &str) {
    let path = folder.plugin_path(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(server: &mut StdioServer, uri: &str) -> Value {
    server.result("resources/read", json!({"uri": uri}))["contents"][0].clone()
}

fn resources(server: &mut StdioServer) -> Vec<Value> {
    server.result("resources/list", json!({}))["resources"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn every_revision_lists_views() {
    let folder = Folder::with("chart.wasm", sample("chart"));
    folder.put(
        "chart.toml",
        "[permissions.ui]\nconnect = [\"https://api.example.com\"]",
    );
    for revision in [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        MODERN,
    ] {
        let mut server = StdioServer::start_with_revision(revision, &folder);
        server.wait_for_tool("bar_chart");
        let tools = server.tools();
        let expected =
            json!({"ui": {"resourceUri": "ui://chart/view"}, "ui/resourceUri": "ui://chart/view"});
        assert_eq!(meta(&tools, "name", "bar_chart"), &expected, "{revision}");
        assert_eq!(
            meta(&tools, "name", "group_values"),
            &json!({"ui": {"visibility": ["app"]}}),
            "{revision}"
        );
        let view = read(&mut server, "ui://chart/view");
        assert_eq!(view["mimeType"], "text/html;profile=mcp-app");
        // The view requests no access, so it gets none of what is granted.
        assert_eq!(
            view["_meta"],
            json!({"ui": {"prefersBorder": false}}),
            "{revision}"
        );
        let result = server.call("bar_chart", json!({"labels": ["a"], "values": [1]}));
        assert!(
            result["content"]
                .as_array()
                .unwrap()
                .iter()
                .any(|block| block["type"] == "text"),
            "{result}"
        );
    }
}

#[test]
fn a_changed_grant_changes_the_origins_of_views() {
    let folder = Folder::with("library.wasm", library());
    let mut server = StdioServer::start(&folder);
    let uri = "ui://library/reader";
    server.wait_until("the view is listed", |server| {
        resources(server).iter().any(|entry| entry["uri"] == uri)
    });
    let border = json!({"ui": {"prefersBorder": true}});
    assert_eq!(meta(&resources(&mut server), "uri", uri), &border);
    assert_eq!(read(&mut server, uri)["_meta"], border);
    server.log.wait_for(
        "add to [permissions] in library.toml: ui.connect = [\"https://api.example.com\"]",
    );
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        listed.contains("it may not have connections to https://api.example.com"),
        "{listed}"
    );
    folder.put(
        "library.toml",
        "[permissions]\nui.connect = [\"https://api.example.com\"]",
    );
    server.notification("notifications/resources/list_changed");
    let granted = json!({"ui": {"csp": {"connectDomains": ["https://api.example.com"]}, "prefersBorder": true}});
    assert_eq!(meta(&resources(&mut server), "uri", uri), &granted);
    assert_eq!(read(&mut server, uri)["_meta"], granted);
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        listed.contains("connections of views: https://api.example.com"),
        "{listed}"
    );
    folder.remove("library.toml");
    server.notification("notifications/resources/list_changed");
    assert_eq!(read(&mut server, uri)["_meta"], border);
}

#[test]
fn the_grant_limits_the_permissions_that_contents_request() {
    let folder = Folder::with("library.wasm", library());
    folder.put(
        "library.toml",
        "[permissions.ui]\nframes = [\"http://127.0.0.1:9\"]\npermissions = [\"clipboard-write\"]",
    );
    let mut server = StdioServer::run(ToolbayCommand::new(&folder).args(["serve", "--learn"]))
        .with_handshake("2025-11-25");
    let uri = "ui://library/probe/9";
    server.wait_until("the view can be read", |server| {
        server.request_and_wait("resources/read", json!({"uri": uri}))["error"].is_null()
    });
    let expected = json!({"ui": {"csp": {"frameDomains": ["http://127.0.0.1:9"]}, "permissions": {"clipboardWrite": {}}}});
    assert_eq!(read(&mut server, uri)["_meta"], expected);
    let denied = server.log.wait_for("connections to http://127.0.0.1:9");
    assert!(
        denied.contains("denied: The view ui://library/probe/9 may not have connections to"),
        "{denied}"
    );
    server
        .log
        .wait_for("wrote a proposed grant: library.toml.proposed");
    server.stop();
    let proposed = std::fs::read_to_string(folder.plugin_path("library.toml.proposed")).unwrap();
    for line in [
        "frames = [\"http://127.0.0.1:9\"]",
        "connect = [\"http://127.0.0.1:9\"",
        "\"camera\"",
    ] {
        assert!(proposed.contains(line), "{line}: {proposed}");
    }
    assert!(
        !proposed.contains('*') && !proposed.contains("x/csp"),
        "{proposed}"
    );
}

#[test]
fn a_file_is_a_view_with_the_permissions_of_its_grant() {
    let folder = Folder::with(
        "acme.wasm",
        component_with_view("acme", "ui://acme/page.html"),
    );
    write(&folder, "acme.resources/ui/page.html", PAGE);
    write(&folder, "acme.resources/ui/sub/more.html", PAGE);
    write(&folder, "acme.resources/ui/style.css", "p {}");
    write(&folder, "acme.resources/page.html", PAGE);
    folder.put(
        "acme.toml",
        "[permissions.ui]\nresources = [\"https://cdn.example.com\"]\npermissions = [\"camera\"]",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("acme");
    let uris = [
        "toolbay://acme/page.html",
        "toolbay://acme/ui/style.css",
        "ui://acme/page.html",
        "ui://acme/sub/more.html",
    ];
    server.wait_until("the files are listed", |server| {
        resources(server)
            .iter()
            .map(|entry| entry["uri"].as_str().unwrap_or_default().to_owned())
            .eq(uris)
    });
    let granted = json!({"ui": {"csp": {"resourceDomains": ["https://cdn.example.com"]}, "permissions": {"camera": {}}}});
    let view = read(&mut server, "ui://acme/page.html");
    assert_eq!(
        (&view["text"], &view["mimeType"]),
        (&json!(PAGE), &json!("text/html;profile=mcp-app"))
    );
    assert_eq!(view["_meta"], granted);
    assert_eq!(
        meta(&resources(&mut server), "uri", "ui://acme/sub/more.html"),
        &granted
    );
    let plain = read(&mut server, "toolbay://acme/page.html");
    assert_eq!(
        (&plain["mimeType"], plain.get("_meta")),
        (&json!("text/html"), None)
    );
    assert_eq!(
        meta(&server.tools(), "name", "acme")["ui"],
        json!({"resourceUri": "ui://acme/page.html"})
    );
    // Without its file, the tool continues without a view, and the operator gets a warning.
    std::fs::remove_file(folder.plugin_path("acme.resources/ui/page.html")).unwrap();
    server.notification("notifications/tools/list_changed");
    assert_eq!(
        meta(&server.tools(), "name", "acme"),
        &json!({"example.com/x": 1})
    );
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        listed.contains("tool \"acme\" is shown without its view \"ui://acme/page.html\""),
        "{listed}"
    );
    write(&folder, "acme.resources/ui/page.html", PAGE);
    server.notification("notifications/tools/list_changed");
    assert_eq!(
        meta(&server.tools(), "name", "acme")["ui/resourceUri"],
        "ui://acme/page.html"
    );
}

#[test]
fn a_folder_of_views_without_a_plugin_needs_only_its_grant() {
    let folder = Folder::new();
    write(&folder, "page.resources/ui/a.html", PAGE);
    folder.put(
        "page.toml",
        "[permissions.ui]\nconnect = [\"https://api.example.com\"]",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until("the view is listed", |server| !resources(server).is_empty());
    let expected = json!({"ui": {"csp": {"connectDomains": ["https://api.example.com"]}}});
    assert_eq!(read(&mut server, "ui://page/a.html")["_meta"], expected);
}

#[test]
fn every_key_of_a_views_grant_is_sent_to_clients() {
    let folder = Folder::new();
    write(&folder, "page.resources/ui/a.html", PAGE);
    let grant = "[permissions.ui]\nconnect = [\"wss://a.example\"]\nresources = [\"https://*.b.example\"]\n\
        frames = [\"https://c.example:8443\"]\nbase = [\"https://d.example\"]\n\
        permissions = [\"camera\", \"microphone\", \"geolocation\", \"clipboard-write\"]\ndomain = \"e.example\"\n";
    folder.put("page.toml", grant);
    let mut server = StdioServer::start(&folder);
    server.wait_until("the view is listed", |server| !resources(server).is_empty());
    let expected = json!({"ui": {
        "csp": {
            "connectDomains": ["wss://a.example"],
            "resourceDomains": ["https://*.b.example"],
            "frameDomains": ["https://c.example:8443"],
            "baseUriDomains": ["https://d.example"],
        },
        "permissions": {"camera": {}, "microphone": {}, "geolocation": {}, "clipboardWrite": {}},
        "domain": "e.example",
    }});
    assert_eq!(read(&mut server, "ui://page/a.html")["_meta"], expected);
    assert_eq!(
        meta(&resources(&mut server), "uri", "ui://page/a.html"),
        &expected
    );
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    for line in [
        "connections of views: wss://a.example",
        "images, scripts, styles and fonts of views: https://*.b.example",
        "frames of views: https://c.example:8443",
        "base URLs of views: https://d.example",
        "devices of views: camera, microphone, geolocation, clipboard-write",
        "domain of views: e.example",
    ] {
        assert!(listed.contains(line), "{line}: {listed}");
    }
}

#[test]
fn without_a_grant_clients_receive_no_permissions_of_a_view() {
    let folder = Folder::with("library.wasm", library());
    write(&folder, "page.resources/ui/a.html", PAGE);
    let mut server = StdioServer::start(&folder);
    server.wait_until("the views can be read", |server| {
        ["ui://library/probe/9", "ui://page/a.html"]
            .iter()
            .all(|uri| {
                server.request_and_wait("resources/read", json!({"uri": uri}))["error"].is_null()
            })
    });
    for uri in ["ui://library/probe/9", "ui://page/a.html"] {
        assert_eq!(read(&mut server, uri).get("_meta"), None, "{uri}");
    }
    for entry in resources(&mut server) {
        let ui = &entry["_meta"]["ui"];
        assert!(
            ui.get("csp").is_none() && ui.get("permissions").is_none(),
            "{entry}"
        );
    }
}

#[test]
fn a_tool_cannot_use_the_view_of_another_plugin() {
    let folder = Folder::with("zeta.wasm", component_with_view("thief", "ui://chart/view"));
    folder.put(
        "beta.wasm",
        component_with_view("hopeful", "ui://beta/none"),
    );
    folder.put("library.wasm", library());
    folder.put(
        "mule.wasm",
        component_with_view("mule", "ui://library/probe/7"),
    );
    folder.put("chart.wasm", sample("chart"));
    // A file whose name matches another plugin's view does not claim that view: its folder
    // identifies the plugin.
    write(&folder, "aaa.resources/ui/view.html", PAGE);
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&[
        "bar_chart",
        "group_values",
        "hopeful",
        "line_chart",
        "mule",
        "thief",
    ]);
    let tools = server.tools();
    for name in ["thief", "hopeful", "mule"] {
        assert_eq!(
            meta(&tools, "name", name),
            &json!({"example.com/x": 1}),
            "{name}"
        );
    }
    assert_eq!(
        meta(&tools, "name", "bar_chart")["ui/resourceUri"],
        "ui://chart/view"
    );
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    for why in [
        "tool \"thief\" is shown without its view \"ui://chart/view\": it belongs to plugin \"chart\"",
        "tool \"mule\" is shown without its view \"ui://library/probe/7\": no resource with this URI is listed",
        "tool \"hopeful\" is shown without its view \"ui://beta/none\": no resource with this URI is listed",
    ] {
        assert!(listed.contains(why), "{why}: {listed}");
    }
}

#[test]
fn views_in_the_name_of_another_plugin_are_not_offered() {
    // `aaa` is loaded first, and has the views of a plugin that is loaded later.
    let folder = Folder::with("aaa.wasm", sample("chart"));
    folder.put("chart.wasm", component_with_view("mine", "ui://chart/view"));
    write(
        &folder,
        "chart.resources/ui/view",
        "no view, without an extension",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["bar_chart", "group_values", "line_chart", "mine"]);
    assert!(
        server.request_and_wait("resources/read", json!({"uri": "ui://chart/view"}))["error"]
            .is_object()
    );
    for name in ["mine", "bar_chart"] {
        assert!(
            meta(&server.tools(), "name", name).get("ui").is_none(),
            "{name}"
        );
    }
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    let why =
        "view \"ui://chart/view\" is not offered: views of this name belong to plugin \"chart\"";
    assert!(listed.contains(why), "{listed}");
    // Without that plugin, the name is free.
    folder.remove("chart.wasm");
    std::fs::remove_dir_all(folder.plugin_path("chart.resources")).unwrap();
    server.wait_until("the view is offered", |server| {
        server.request_and_wait("resources/read", json!({"uri": "ui://chart/view"}))["error"]
            .is_null()
    });
}

#[test]
fn problems_of_views_are_reported_before_they_are_used() {
    let folder = Folder::with("library.wasm", library());
    let file = folder.plugin_path("library.wasm");
    let checked = ToolbayCommand::new(&folder)
        .args([std::ffi::OsStr::new("check"), file.as_os_str()])
        .run()
        .stdout;
    for said in [
        "! view \"ui://library/reader\": connectDomains: \"*\" is not an origin",
        "! view \"ui://library/reader\": there is no permission \"usb\"",
        "    # ui.connect = [\"https://api.example.com\"]",
        "    # ui.resources = [\"https://*.example.org\"]",
    ] {
        assert!(checked.contains(said), "{said}: {checked}");
    }
    folder.put("lost.wasm", component_with_view("lost", "ui://lost/view"));
    let file = folder.plugin_path("lost.wasm");
    let checked = ToolbayCommand::new(&folder)
        .args([std::ffi::OsStr::new("check"), file.as_os_str()])
        .run()
        .stdout;
    assert!(
        checked.contains(
            "tool \"lost\": the plugin lists no resource \"ui://lost/view\" for its view"
        ),
        "{checked}"
    );
    folder.put("lost.toml", "[permissions.ui]\nconect = []");
    let mut server = StdioServer::start(&folder);
    server
        .log
        .wait_for("lost.toml:2:1: unknown key `conect`; did you mean `connect`?");
    server.stop();
}
