// Node has promises whose jobs run on their own: see engine.js.
