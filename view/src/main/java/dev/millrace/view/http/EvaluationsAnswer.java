package dev.millrace.view.http;

import dev.millrace.view.index.EvaluationIndex;
import dev.millrace.view.index.RunIndex;
import java.util.ArrayList;
import java.util.List;

/** The versions of a run on held-out prompts, as its topic of evaluations has them. */
public final class EvaluationsAnswer {
    private EvaluationsAnswer() {}

    /** A JSON object with the evaluations that can be compared, by version. */
    public static String of(RunIndex index, int epoch) {
        List<String> rows = new ArrayList<>();
        EvaluationIndex.read(index, epoch, row -> rows.add(row.getString(1)));
        return "{\"evaluations\":[" + String.join(",", rows) + "]}";
    }
}
