package dev.millrace.view.answer;

import dev.millrace.view.index.RunIndex;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The steps of a run's epoch, as the training log has them. */
public final class StepsAnswer {
    /** More than a screen has columns: of longer runs every so many steps, and always the newest. */
    static final int MOST = 2000;

    private StepsAnswer() {}

    /**
     * A JSON object with the steps, oldest first, and of how many they were chosen.
     *
     * @param after only steps on batches behind this one; -1 for all
     */
    public static String of(RunIndex index, int epoch, long after) {
        long count = index.numbers("SELECT count(*) FROM step WHERE epoch = ? AND batch > ?", epoch, after)
                .get(0);
        long every = Math.max(1, (count + MOST - 1) / MOST);
        List<String> steps = new ArrayList<>();
        index.read(
                "SELECT json FROM (SELECT json, row_number() OVER (ORDER BY batch DESC) - 1 AS back FROM step"
                        + " WHERE epoch = ? AND batch > ?) WHERE back % ? = 0 ORDER BY back",
                List.of(epoch, after, every), row -> steps.add(row.getString(1)));
        Collections.reverse(steps);
        return "{\"count\":" + count + ",\"every\":" + every + ",\"steps\":[" + String.join(",", steps) + "]}";
    }
}
