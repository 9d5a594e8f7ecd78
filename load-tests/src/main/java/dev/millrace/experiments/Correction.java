package dev.millrace.experiments;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.replay.Alternative;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.report.NamedCorrections;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A correction under comparison: an algorithm of the product without a limit on staleness. Batch, optimizer and learning
 * rate are shared.
 *
 * @param key in file names, tables and options
 */
public record Correction(@JsonValue String key, String title, Algorithm algorithm) {
    /** {@code -A log π} */
    private static final Algorithm PLAIN = NamedAlgorithms.of("none")
            .with(a -> a.advantage(Grpo.defaults()).staleness(new StalenessRules(Long.MAX_VALUE, 0, 0)));

    private static final List<Correction> ALL = read("corrections.yaml");

    /** Of a resource, in its order. */
    static List<Correction> read(String resource) {
        try (InputStream in = Correction.class.getResourceAsStream(resource)) {
            if (in == null) {
                throw new IllegalStateException("the resource " + resource + " is missing");
            }
            List<Correction> all = new ArrayList<>();
            ObjectNode tree = ConfigTree.parse(new String(in.readAllBytes(), StandardCharsets.UTF_8), resource);
            tree.properties().forEach(each -> {
                ObjectNode changes = (ObjectNode) each.getValue();
                String title = changes.remove("title").textValue();
                all.add(new Correction(each.getKey(), title, ConfigBinder.bind(PLAIN, changes)));
            });
            return List.copyOf(all);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static List<Correction> all() {
        return ALL;
    }

    @Override
    public String toString() {
        return key;
    }

    /**
     * A correction of {@code corrections.yaml}, or what {@code --corrections} names elsewhere: a file with keys of {@code
     * algorithm}, one of verl's presets, or an algorithm of the catalogue with its own minibatches.
     *
     * @throws dev.millrace.runtime.config.ConfigException if it names none of these
     */
    @JsonCreator
    public static Correction of(String named) {
        for (Correction known : ALL) {
            if (known.key().equalsIgnoreCase(named)) {
                return known;
            }
        }
        Alternative other = NamedCorrections.parse(named, PLAIN);
        String key = other.name().replaceFirst("\\.ya?ml$", "");
        return new Correction(key, key, other.algorithm());
    }
}
