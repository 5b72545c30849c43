// The streams of the web platform, as globals. They are a module of their own because they are
// large, and loading them has an effect: see body-stream.js.

export {
  ByteLengthQueuingStrategy,
  CountQueuingStrategy,
  ReadableByteStreamController,
  ReadableStream,
  ReadableStreamBYOBReader,
  ReadableStreamBYOBRequest,
  ReadableStreamDefaultController,
  ReadableStreamDefaultReader,
  TransformStream,
  TransformStreamDefaultController,
  WritableStream,
  WritableStreamDefaultController,
  WritableStreamDefaultWriter,
} from './streams.js';
export { TextDecoderStream, TextEncoderStream } from './text-streams.js';
