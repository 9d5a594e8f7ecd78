/**
 * Records to bytes and back: a zero byte, the schema's id as a big-endian int32, the Avro binary encoding.
 *
 * <p>This is the Confluent wire format, so stock clients can read the topics. {@link
 * dev.millrace.schemas.serde.AvroSerde} is thread-safe and costs one copy per record each way. Invalid bytes always
 * give a {@link dev.millrace.schemas.serde.MalformedRecordException} with a sentence. An unreachable registry is a
 * {@code SchemaRegistryException}, because the record may be valid.
 */
@NullMarked
package dev.millrace.schemas.serde;

import org.jspecify.annotations.NullMarked;
