package dev.millrace.schemas.registry;

/** No schema has the id a record begins with; the record cannot be read and belongs on the dead-letter topic. */
public final class UnknownSchemaException extends SchemaRegistryException {
    private static final long serialVersionUID = 1L;

    public UnknownSchemaException(int id) {
        super("no schema has id " + id);
    }

    /** The id belongs to a schema that is not Avro or cannot be read. */
    public UnknownSchemaException(int id, String why) {
        super("schema " + id + " " + why);
    }
}
