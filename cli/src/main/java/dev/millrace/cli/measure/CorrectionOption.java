package dev.millrace.cli.measure;

import dev.millrace.experiments.Correction;
import dev.millrace.runtime.config.ConfigException;
import java.util.Iterator;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Value of {@code --corrections}; lists those with a short name. */
final class CorrectionOption implements ITypeConverter<Correction>, Iterable<String> {
    @Override
    public Correction convert(String named) {
        try {
            return Correction.of(named);
        } catch (ConfigException e) {
            throw new TypeConversionException(String.valueOf(e.getMessage()));
        }
    }

    @Override
    public Iterator<String> iterator() {
        return Correction.all().stream().map(Correction::key).iterator();
    }
}
