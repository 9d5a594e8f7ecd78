package dev.millrace.view.http;

import dev.millrace.view.index.RunIndex;
import java.util.ArrayList;
import java.util.List;

/** The steps of a run's epoch, as the training log has them. */
public final class StepsAnswer {
    /** More than a screen has columns: of longer runs every so many steps. */
    static final int MOST = 2000;
    /** So many of the newest are always there: what is said of the last steps is said of them and no others. */
    private static final int NEWEST = 60;
    /** Of steps that are numbered from the newest, which one is {@code back} 0; takes every how many. */
    static final String CHOSEN = "(back % ? = 0 OR back < " + NEWEST + ")";

    private StepsAnswer() {}

    /**
     * A JSON object with the steps, oldest first, of how many they were chosen, and how many the index has of all.
     *
     * @param after only steps on batches behind this one; -1 for all
     */
    public static String of(RunIndex index, int epoch, long after) {
        long all = all(index, epoch, -1);
        long count = after < 0 ? all : all(index, epoch, after);
        long every = Math.max(1, (count + MOST - 1) / MOST);
        // by the key's own index, and not over what a step holds
        return json(
                index,
                all,
                count,
                every,
                List.of(epoch, epoch, after, every),
                "SELECT json FROM step WHERE epoch = ? AND batch IN"
                        + " (SELECT batch FROM (SELECT batch, row_number() OVER (ORDER BY batch DESC) - 1 AS back FROM step"
                        + " WHERE epoch = ? AND batch > ?) WHERE " + CHOSEN + ") ORDER BY batch");
    }

    /** The same of the newest steps alone, which are there at once however long the run is. */
    public static String newest(RunIndex index, int epoch) {
        long all = all(index, epoch, -1);
        return json(
                index,
                all,
                Math.min(all, NEWEST),
                1,
                List.of(epoch, NEWEST),
                "SELECT json FROM (SELECT json, batch FROM step WHERE epoch = ? ORDER BY batch DESC LIMIT ?) ORDER BY batch");
    }

    private static long all(RunIndex index, int epoch, long after) {
        return index.numbers("SELECT count(*) FROM step WHERE epoch = ? AND batch > ?", epoch, after)
                .get(0);
    }

    private static String json(RunIndex index, long all, long count, long every, List<?> arguments, String sql) {
        List<String> steps = new ArrayList<>();
        index.read(sql, arguments, row -> steps.add(row.getString(1)));
        return "{\"all\":" + all + ",\"count\":" + count + ",\"every\":" + every + ",\"steps\":["
                + String.join(",", steps) + "]}";
    }
}
