/**
 * ONNX Runtime through its C API: graphs that are compiled for a device, tensors in its memory, and what of them a run reads and
 * writes.
 */
@NullMarked
package dev.millrace.policy.ort;

import org.jspecify.annotations.NullMarked;
