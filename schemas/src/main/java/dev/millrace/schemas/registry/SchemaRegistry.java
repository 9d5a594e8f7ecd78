package dev.millrace.schemas.registry;

import org.apache.avro.Schema;

/**
 * Maps schemas to the ids at the start of every record, and back.
 *
 * <p>Ids are those of the Confluent wire format: a record is a zero byte, the id as a big-endian int32, then
 * the Avro binary encoding. Implementations are thread-safe and cache, so that the hot path is a map look-up.
 */
public interface SchemaRegistry extends AutoCloseable {

    /**
     * The id of a schema under a subject, registered if it is new and this registry may write.
     *
     * @param subject topic name followed by {@code -value}
     * @throws SchemaRegistryException if it is not registered and cannot be
     */
    int idOf(String subject, Schema schema);

    /**
     * The schema that was registered under an id.
     *
     * @throws UnknownSchemaException if no schema has this id
     */
    Schema byId(int id);

    @Override
    void close();
}
