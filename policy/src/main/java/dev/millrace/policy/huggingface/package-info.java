/**
 * Reads and writes decoders as Hugging Face directories: {@code config.json} and {@code *.safetensors}.
 *
 * <p>Families are Llama (SmolLM with it), Mistral, Qwen2 and Qwen3, with linear, Llama 3.1's and YaRN's rotary positions, in float32,
 * bfloat16 and float16. What the decoder does not compute (other positions, experts, capped scores, quantised weights) is refused by
 * the key and value that ask for it, never left out.
 */
@NullMarked
package dev.millrace.policy.huggingface;

import org.jspecify.annotations.NullMarked;
