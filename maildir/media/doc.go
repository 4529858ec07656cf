// Package media says what a file is that is sent along, and makes WebP of images.
//
// It goes by bytes and never by a name alone:
//
//   - A PNG, JPEG, GIF or WebP image is one by its first bytes, whatever its name says. It counts as
//     an image where it is whole (each format is walked to its end) and has at most [MaxPixels].
//   - What says that it is an image and is not usable as one is inert: its bytes are kept, as plain
//     text or plain data, so that nobody's viewer opens it. SVG is text here: it can hold scripts.
//   - Any other file keeps its extension, and gets one that fits where it has none.
//
// # Memory and time
//
// New allocates nothing in proportion to pixels: it reads headers. Only ToWebP decodes, and only up
// to MaxConvert pixels: the encoder takes 52 bytes a pixel, decoding and comparing 12 more. On one
// core it takes 0.6 seconds for a million pixels. The caller sees to it that one image is converted
// at a time.
package media
