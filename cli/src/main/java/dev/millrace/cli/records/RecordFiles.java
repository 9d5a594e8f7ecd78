package dev.millrace.cli.records;

import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The files that a pattern names, in the order of their names, in which numbers count as numbers: 2.jsonl is before 10.jsonl. */
final class RecordFiles {
    private static final Pattern PARTS = Pattern.compile("\\d+|\\D+");

    private RecordFiles() {}

    /**
     * @param pattern a file, or a folder and a pattern of names in it such as {@code dump/*.jsonl}
     * @throws RefusedRequestException if it names none
     */
    static List<Path> of(String pattern) {
        if (Files.exists(Path.of(pattern)) && !Files.isDirectory(Path.of(pattern))) {
            return List.of(Path.of(pattern)); // a pipe is one, too
        }
        int slash = pattern.lastIndexOf('/');
        Path folder = Path.of(slash < 0 ? "." : slash == 0 ? "/" : pattern.substring(0, slash));
        String names = pattern.substring(slash + 1);
        List<Path> files = new ArrayList<>();
        try (DirectoryStream<Path> there = Files.newDirectoryStream(folder, names)) {
            there.forEach(file -> {
                if (Files.isRegularFile(file)) {
                    files.add(file);
                }
            });
        } catch (IOException | java.util.regex.PatternSyntaxException e) {
            throw new RefusedRequestException(
                    "--records " + pattern + ": cannot look into " + folder + ": " + e.getMessage()
                            + "; give a file, or a folder and a pattern of names, in quotes, such as 'dump/*.jsonl'",
                    e);
        }
        if (files.isEmpty()) {
            throw new RefusedRequestException(
                    "--records " + pattern
                            + " names no file; give a file, or a folder and a pattern of names, in quotes, such as 'dump/*.jsonl'");
        }
        files.sort(Comparator.comparing(file -> file.getFileName().toString(), RecordFiles::compare));
        return files;
    }

    static int compare(String one, String other) {
        Matcher ofOne = PARTS.matcher(one);
        Matcher ofOther = PARTS.matcher(other);
        while (ofOne.find()) {
            if (!ofOther.find()) {
                return 1;
            }
            String a = ofOne.group();
            String b = ofOther.group();
            boolean areNumbers = Character.isDigit(a.charAt(0)) && Character.isDigit(b.charAt(0));
            int compared = areNumbers ? new BigInteger(a).compareTo(new BigInteger(b)) : a.compareTo(b);
            if (compared != 0) {
                return compared;
            }
        }
        return ofOther.find() ? -1 : one.compareTo(other);
    }
}
