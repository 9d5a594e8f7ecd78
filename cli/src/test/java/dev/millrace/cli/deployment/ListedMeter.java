package dev.millrace.cli.deployment;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** A line of the list of the roles' meters. */
public record ListedMeter(String name, String type, String unit, String labels, String role, String meaning) {

    /** The whole list. */
    public static List<ListedMeter> all() throws IOException {
        return Files.readAllLines(Path.of("../infra/prometheus/meters.csv")).stream()
                .skip(1)
                .map(line -> line.split(",", 6))
                .map(cells -> new ListedMeter(cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]))
                .toList();
    }
}
