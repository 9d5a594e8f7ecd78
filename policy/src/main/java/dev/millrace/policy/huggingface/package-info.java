/**
 * Reads and writes decoders as Hugging Face directories: {@code config.json} and {@code *.safetensors}.
 *
 * <p>What our decoder does not compute (scaled rotary positions, sliding windows, biases elsewhere than on queries, keys and
 * values) is refused by the key that asks for it, never left out.
 */
@NullMarked
package dev.millrace.policy.huggingface;

import org.jspecify.annotations.NullMarked;
