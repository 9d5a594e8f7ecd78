package dev.millrace.log.registry;

import dev.millrace.log.registry.RegistryContents.Registration;
import dev.millrace.schemas.registry.SchemaRegistryException;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;

/** What a new version of a schema must keep: old readers can read its records, and it can read old records. */
final class CompatibilityRule {
    private CompatibilityRule() {}

    static void requireFull(String subject, Registration previous, String text) {
        Schema before = new Schema.Parser().parse(previous.schema());
        Schema after = new Schema.Parser().parse(text);
        requireReadable(subject, previous.version(), "the new schema cannot read records of version ", after, before);
        requireReadable(
                subject, previous.version(), "records of the new schema cannot be read by version ", before, after);
    }

    private static void requireReadable(String subject, int version, String what, Schema reader, Schema writer) {
        var result = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer);
        if (result.getType() != SchemaCompatibilityType.COMPATIBLE) {
            throw new SchemaRegistryException("subject " + subject + ": " + what + version + ": "
                    + result.getResult().getIncompatibilities());
        }
    }
}
