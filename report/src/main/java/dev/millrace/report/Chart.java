package dev.millrace.report;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/** Curves over one x axis. */
public record Chart(String title, Axis x, Axis y, List<Series> series, List<Mark> marks) {
    /** An event on the x axis. */
    public record Mark(double at, String what) {}

    public Chart {
        series = List.copyOf(series);
        marks = List.copyOf(marks);
        List<String> names = series.stream().map(Series::name).toList();
        if (names.stream().distinct().count() < names.size()) {
            throw new IllegalArgumentException("curves of one chart need different names: " + names);
        }
    }

    /** Numbers curves of equal names. */
    public static Chart of(String title, Axis x, Axis y, List<Series> series) {
        List<Series> named = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (Series one : series) {
            String name = one.name();
            for (int again = 2; !names.add(name); again++) {
                name = one.name() + " (" + again + ")";
            }
            named.add(new Series(name, one.style(), one.x(), one.y()));
        }
        return new Chart(title, x, y, named, List.of());
    }

    public Chart marked(List<Mark> happened) {
        return new Chart(title, x, y, series, happened);
    }

    boolean isEmpty() {
        return series.stream().noneMatch(this::draws);
    }

    boolean draws(Series one) {
        return IntStream.range(0, one.x().size())
                .anyMatch(i -> x.holds(one.x().get(i)) && y.holds(one.y().get(i)));
    }
}
