// Package media detects the type of attached files and converts images to WebP.
//
// The package always examines a file's bytes, and never relies on the name alone:
//
//   - A PNG, JPEG, GIF or WebP image is recognized by its first bytes, regardless of its name. It is treated as an
//     image if it is complete (each format is read to its end) and has at most [MaxPixels].
//   - A file that claims to be an image but is not usable as one is made inert. Its bytes are kept as plain text or
//     plain data, so that no viewer opens it as an image. SVG is treated as text, because it can contain scripts.
//   - Any other file keeps its extension. A file without an extension gets a suitable one.
//
// # Memory and time
//
// New does not decode pixels, and its memory use does not depend on the number of pixels. Only ToWebP decodes images,
// and only up to MaxConvert pixels. The encoder takes 52 bytes per pixel, and decoding and comparing take 12 more. One
// core takes 0.6 seconds for a million pixels. The caller must convert only one image at a time.
package media
