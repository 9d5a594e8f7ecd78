/**
 * Reads and writes decoders as Hugging Face directories: {@code config.json} and {@code *.safetensors}.
 *
 * <p>Families are Llama (SmolLM with it), Mistral, Qwen2 and Qwen3, with linear, Llama 3.1's and YaRN's rotary positions, in float32,
 * bfloat16 and float16. Unsupported features (other positions, experts, capped scores, quantised weights) are refused
 * by key and value, never ignored.
 */
@NullMarked
package dev.millrace.policy.huggingface;

import org.jspecify.annotations.NullMarked;
