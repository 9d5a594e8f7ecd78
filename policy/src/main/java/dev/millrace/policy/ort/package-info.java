/**
 * ONNX Runtime through its C API: sessions compiled for a device, tensors in its memory, and I/O bindings.
 */
@NullMarked
package dev.millrace.policy.ort;

import org.jspecify.annotations.NullMarked;
