"""What happens only with faults or slow messages; reached by `entry.call_faults`."""
