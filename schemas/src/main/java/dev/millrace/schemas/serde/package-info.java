/**
 * Records to bytes and back: a zero byte, the schema's id as a big-endian int32, the Avro binary encoding.
 *
 * <p>That is the Confluent wire format, so every stock client can read our topics. {@link
 * dev.millrace.schemas.serde.AvroSerde} is thread-safe and costs one copy per record each way. What it promises
 * about bad input: {@link dev.millrace.schemas.serde.MalformedRecordException}, with a sentence, and nothing else,
 * for whatever bytes it is given; a registry that is out of reach is a {@code SchemaRegistryException}, because
 * then nothing is wrong with the record.
 */
@NullMarked
package dev.millrace.schemas.serde;

import org.jspecify.annotations.NullMarked;
