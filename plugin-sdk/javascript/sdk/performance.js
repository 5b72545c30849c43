// `performance`. The engine's counts from the build of the plugin, on another machine's clock.

/** Returns a `performance` for the engine's, with a function that begins a call. Times are since that beginning. */
export function performanceOf(engine) {
  let start;
  let timeOrigin = 0;
  const performance = {
    // While the plugin is built, no time passes.
    now: () => (start === undefined ? 0 : engine.now() - start),
    get timeOrigin() {
      return timeOrigin;
    },
    toJSON: () => ({ timeOrigin }),
  };
  const begin = () => {
    start = engine.now();
    timeOrigin = Date.now();
  };
  return { performance, begin };
}
