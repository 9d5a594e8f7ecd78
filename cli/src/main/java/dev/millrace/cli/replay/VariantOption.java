package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.retrain.Variant;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.NamedCorrections;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;

/**
 * Value of {@code --corrections} for retraining: as elsewhere, or a file with sections {@code algorithm} and {@code
 * step}, whose keys override the run's.
 */
final class VariantOption {
    private static final String ALGORITHM = "algorithm";
    private static final String STEP = "step";

    private VariantOption() {}

    static Variant parse(String named, MillraceConfig ofRun) {
        Algorithm algorithm = ofRun.algorithm();
        StepConfig step = ofRun.learner().step();
        Path file = Path.of(named);
        ObjectNode tree = Files.isRegularFile(file) ? ConfigTree.read(file) : ConfigTree.empty();
        if (!tree.has(ALGORITHM) && !tree.has(STEP)) {
            Alternative alternative = NamedCorrections.parse(named, algorithm);
            return new Variant(alternative.name(), alternative.algorithm(), step, ofRun.adapter());
        }
        refuseOthers(tree, named);
        try {
            return new Variant(
                    file.getFileName().toString(),
                    tree.get(ALGORITHM) instanceof ObjectNode keys
                            ? NamedCorrections.read(named, keys, algorithm)
                            : algorithm,
                    tree.has(STEP) ? ConfigBinder.bind(step, tree.get(STEP)) : step,
                    ofRun.adapter());
        } catch (ConfigException e) {
            String message = String.valueOf(e.getMessage());
            throw message.startsWith("--corrections")
                    ? e
                    : new ConfigException("--corrections " + named + ": " + message, e);
        }
    }

    private static void refuseOthers(ObjectNode tree, String named) {
        for (Iterator<String> keys = tree.fieldNames(); keys.hasNext(); ) {
            String key = keys.next();
            if (!key.equals(ALGORITHM) && !key.equals(STEP)) {
                throw new ConfigException("--corrections " + named + " has the section " + key + " next to " + ALGORITHM
                        + " and " + STEP + "; leave it out, or put it under the one that it belongs to");
            }
        }
    }
}
