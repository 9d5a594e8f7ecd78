package dev.millrace.topology.task;

import org.apache.kafka.common.header.Headers;
import org.jspecify.annotations.Nullable;

/**
 * A record that a task has decided to make.
 *
 * @param topic where it belongs
 * @param key may be null only where a refused record came without one
 * @param value may be null only where a refused record came without one
 * @param headers without what the task saw, which is added where it is sent
 */
public record TaskOutput(String topic, byte @Nullable [] key, byte @Nullable [] value, Headers headers) {}
