SELECT id, flow_silver AS label FROM labels
