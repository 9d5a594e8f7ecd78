package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageSettings;
import java.util.SortedMap;

/** Report figures of every estimator. */
final class AdvantageReport {
    private AdvantageReport() {}

    /** Of one advantage per sequence; without their mean where there is no sequence. */
    static SortedMap<String, Double> of(Stage stage, StageBatch batch, double[] advantages) {
        SortedMap<String, Double> values = settings(stage, batch);
        double absolute = 0;
        double zeros = 0;
        for (double advantage : advantages) {
            absolute += Math.abs(advantage);
            zeros += advantage == 0.0 ? 1 : 0;
        }
        if (advantages.length > 0) {
            values.put("mean_absolute", absolute / advantages.length);
        }
        values.put("zero_sequences", zeros);
        return values;
    }

    /** Of one advantage per packed token; without their mean where none is trained. */
    static SortedMap<String, Double> ofTokens(Stage stage, StageBatch batch, float[] advantages) {
        SortedMap<String, Double> values = settings(stage, batch);
        TokenBatch tokens = batch.facts().tokens();
        double absolute = 0;
        double zeros = 0;
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            boolean moves = false;
            for (int t = tokens.start(s); t < tokens.end(s); t++) {
                double advantage = tokens.isTrained(t) ? advantages[t] : 0;
                absolute += Math.abs(advantage);
                moves |= advantage != 0;
            }
            zeros += moves ? 0 : 1;
        }
        if (tokens.trainedTokens() > 0) {
            values.put("mean_absolute", absolute / tokens.trainedTokens());
        }
        values.put("zero_sequences", zeros);
        return values;
    }

    private static SortedMap<String, Double> settings(Stage stage, StageBatch batch) {
        SortedMap<String, Double> values = StageSettings.of(stage);
        values.put("groups", (double) batch.facts().tokens().groupCount());
        return values;
    }
}
