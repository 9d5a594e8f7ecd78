package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.retrain.Variant;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.replay.NamedCorrections;
import dev.millrace.stages.CorrectionConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;

/**
 * What {@code --corrections} names where steps are learnt again: what it names elsewhere, or a file with the two sections
 * {@code corrections} and {@code step}, whose keys are those of {@code topology.corrections} and {@code learner.step}, put
 * over the run's own.
 */
final class VariantOption {
    private static final String CORRECTIONS = "corrections";
    private static final String STEP = "step";

    private VariantOption() {}

    static Variant parse(String named, MillraceConfig ofRun) {
        CorrectionConfig corrections = ofRun.topology().corrections();
        StepConfig step = ofRun.learner().step();
        Path file = Path.of(named);
        ObjectNode tree = Files.isRegularFile(file) ? ConfigTree.read(file) : ConfigTree.empty();
        Variant variant;
        if (tree.has(CORRECTIONS) || tree.has(STEP)) {
            refuseOthers(tree, named);
            variant = new Variant(
                    file.getFileName().toString(),
                    tree.has(CORRECTIONS) ? ConfigBinder.bind(corrections, tree.get(CORRECTIONS)) : corrections,
                    tree.has(STEP) ? ConfigBinder.bind(step, tree.get(STEP)) : step);
        } else {
            Alternative alternative = NamedCorrections.parse(named, corrections);
            variant = new Variant(alternative.name(), alternative.corrections(), step);
        }
        try {
            MillraceConfig.requireConsistentRatios(
                    variant.corrections().rolloutCorrection(), variant.step().objective());
        } catch (ConfigException e) {
            throw new ConfigException(
                    "--corrections " + named + ": " + e.getMessage()
                            + ". A file with the sections corrections and step can change the objective with them",
                    e);
        }
        return variant;
    }

    private static void refuseOthers(ObjectNode tree, String named) {
        for (Iterator<String> keys = tree.fieldNames(); keys.hasNext(); ) {
            String key = keys.next();
            if (!key.equals(CORRECTIONS) && !key.equals(STEP)) {
                throw new ConfigException("--corrections " + named + " has the section " + key + " beside "
                        + CORRECTIONS + " and " + STEP + "; leave it out, or put it under the one that it belongs to");
            }
        }
    }
}
