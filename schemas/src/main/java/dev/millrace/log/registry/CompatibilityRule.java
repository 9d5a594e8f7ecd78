package dev.millrace.log.registry;

import dev.millrace.log.registry.RegistryContents.Registration;
import dev.millrace.schemas.registry.SchemaRegistryException;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.Incompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;

/** What a new version of a schema must keep: old readers can read its records, and it can read old records. */
final class CompatibilityRule {
    private CompatibilityRule() {}

    static void requireFull(String subject, Registration previous, String text) {
        Schema before = new Schema.Parser().parse(previous.schema());
        Schema after = new Schema.Parser().parse(text);
        requireReadable(previous, "the new schema cannot read records of version ", after, before);
        requireReadable(previous, "records of the new schema cannot be read by version ", before, after);
    }

    private static void requireReadable(Registration previous, String what, Schema reader, Schema writer) {
        var result = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer);
        if (result.getType() != SchemaCompatibilityType.COMPATIBLE) {
            List<Incompatibility> found = result.getResult().getIncompatibilities();
            Incompatibility first = found.get(0);
            throw new SchemaRegistryException(
                    "subject " + previous.subject() + ": " + what + previous.version() + " (id "
                            + previous.id() + "): " + first.getType() + " at " + first.getLocation()
                            + (found.size() > 1 ? " and " + (found.size() - 1) + " more" : "")
                            + "; another program, or another version of Millrace, has registered that version, so delete it there, or set"
                            + " topics.schemas_topic to the name of a topic of its own and begin another run");
        }
    }
}
