package dev.millrace.runtime.replay;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.replay.Alternative;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.stages.AdvantageConfig;
import dev.millrace.stages.CorrectionConfig;
import dev.millrace.stages.EssConfig;
import dev.millrace.stages.M2poMaskConfig;
import dev.millrace.stages.RolloutCorrectionOptions;
import dev.millrace.stages.SequenceMaskConfig;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * What {@code --corrections} names: a file with the keys of {@code topology.corrections}, put over the run's own; one of
 * the decoupled presets, put in place of the run's weights and rejection; or {@code none}.
 */
public final class NamedCorrections {
    private NamedCorrections() {}

    public static Alternative parse(String named, CorrectionConfig ofRun) {
        if (named.equals("none")) {
            return new Alternative("none", none(ofRun));
        }
        Path file = Path.of(named);
        if (Files.isRegularFile(file)) {
            ObjectNode tree = ConfigTree.read(file);
            try {
                return new Alternative(file.getFileName().toString(), ConfigBinder.bind(ofRun, tree));
            } catch (ConfigException e) {
                throw new ConfigException("--corrections " + named + ": " + e.getMessage(), e);
            }
        }
        if (named.endsWith(".yaml") || named.endsWith(".yml")) {
            throw new ConfigException("there is no file " + named + " with corrections");
        }
        RolloutCorrectionOptions defaults = RolloutCorrectionOptions.defaults();
        try {
            RolloutCorrectionOptions preset = new RolloutCorrectionOptions(
                    named,
                    ofRun.rolloutCorrection().compare(),
                    defaults.rolloutIs(),
                    defaults.rolloutIsThreshold(),
                    "",
                    "");
            return new Alternative(
                    named,
                    new CorrectionConfig(
                            preset,
                            ofRun.advantage(),
                            ofRun.staleness(),
                            ofRun.sequenceMask(),
                            ofRun.m2po(),
                            ofRun.ess(),
                            ofRun.missingOldLogProbs()));
        } catch (IllegalArgumentException e) {
            throw new ConfigException(
                    "--corrections " + named + " is neither a file, nor none, nor a preset: " + e.getMessage(), e);
        }
    }

    /** Neither weights nor masks nor a scaled step; only the limit on staleness, which says what is in the batch at all. */
    static CorrectionConfig none(CorrectionConfig ofRun) {
        RolloutCorrectionOptions nothing =
                new RolloutCorrectionOptions("", ofRun.rolloutCorrection().compare(), "", "", "", "");
        AdvantageConfig advantage = ofRun.advantage();
        return new CorrectionConfig(
                nothing,
                advantage,
                ofRun.staleness(),
                new SequenceMaskConfig(false, ofRun.sequenceMask().threshold()),
                new M2poMaskConfig(false, ofRun.m2po().threshold(), ofRun.m2po().harmfulOnly()),
                new EssConfig(
                        EssConfig.Rule.NONE, ofRun.ess().weights(), ofRun.ess().baseRatio()),
                ofRun.missingOldLogProbs());
    }
}
