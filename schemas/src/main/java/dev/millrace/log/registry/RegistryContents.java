package dev.millrace.log.registry;

import java.util.List;
import java.util.Optional;
import java.util.SortedMap;

/** What a registry holds, as texts: what {@link RegistryHttpApi} serves. Implementations are thread-safe. */
public interface RegistryContents {

    /**
     * One version of one subject.
     *
     * @param id the schema's id, the same for the same text under other subjects
     */
    record Registration(String subject, int version, int id, String schema) {}

    /** Subjects in alphabetical order. */
    List<String> subjects();

    /** Registrations of a subject by version, ascending; empty if there is no such subject. */
    SortedMap<Integer, Registration> versions(String subject);

    Optional<String> schemaText(int id);

    /** How new versions are checked, in the Confluent protocol's words, such as FULL. */
    String compatibilityLevel();
}
